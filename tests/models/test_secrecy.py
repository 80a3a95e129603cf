"""Requests for secrecy in many wordings, and sentences with the same words that are none."""

import pytest

from jidomem.models.keywords import asks_for_secrecy, is_private

REQUESTS = """
I decided to leave my wife. Please keep this private.
This is confidential. I have an interview at Kestrel AG.
Nobody may know: I have an interview.
Please tell nobody: I have an interview.
Please tell nobody that I have an interview at Kestrel AG.
I have an interview at Kestrel AG, but don't tell anyone.
Secret: I have an interview at Kestrel AG.
Keep it between us, I am engaged.
I am engaged. That must stay between you and me.
Between us: I want to ask for 52,000 kronor.
Please do not tell anybody, but I quit.
This is private: I owe my brother 900 euro.
Don't tell Jonas: I have bought a ring.
I am leaving. This stays between us.
Keep this to yourself. I am leaving.
Please keep that secret.
Can you keep a secret? I am leaving.
Confidential: I am leaving.
Confidentially, I am leaving.
Privately, I am leaving.
I am leaving (private).
I am leaving. Strictly confidential!
Off the record, I am leaving.
I'm telling you this in confidence. I am leaving.
No one must know that I am leaving.
Nobody should know about this.
No one else knows yet.
I haven't told anyone yet. I am leaving.
My wife must not know. I am leaving.
My boss mustn't find out.
I don't want anyone to know.
I don't want my colleagues to find out about it.
Don't share this with anyone. I have debts.
Please don't mention it to my manager.
Don't repeat this.
For your ears only: I am leaving.
This is just for you. I am leaving.
It's a secret, I am leaving.
It's not public yet: I am leaving.
Please treat this as confidential.
Please treat it confidentially.
Not a word to my parents!
This must not leave this room.
I'd like this to stay private.
I want to keep this private.
I'd rather you didn't tell anyone.
Never tell Anna.
You're the only one who knows.
Don't let anybody know.
Don’t tell a soul.
Mum's the word.
What I told you is confidential.
What I'm about to say stays between us.
Please be discreet.
Don't write this down.
Don't remember this.
My salary talk is private, please.
Please don't pass this on.
Under NDA: we build a ship.
This shouldn't be shared.
Let's keep it quiet.
keep this just between the two of us
Bitte sag es niemandem. Ich ziehe um.
Bitte erzähl das nicht weiter.
Das ist vertraulich.
Das bleibt unter uns: ich kündige.
Unter uns gesagt, ich kündige.
Behalt das bitte für dich.
Vertraulich: ich kündige.
Niemand darf das wissen.
Das darf niemand erfahren.
Davon soll meine Frau nichts wissen.
Sag meiner Frau nichts davon.
Bitte behandeln Sie das vertraulich.
Ich sage dir das im Vertrauen.
Streng geheim!
Kein Wort zu Jonas.
Bitte nicht weitersagen.
Halte das geheim.
No se lo digas a nadie.
Por favor, no lo cuentes.
Esto es confidencial.
Que quede entre nosotros.
Entre tú y yo, me voy.
Confidencial: me voy.
Nadie debe saberlo.
Nadie puede enterarse.
Guarda esto en secreto.
Te lo digo en confianza.
No quiero que mi jefe lo sepa.
Mantenlo en privado.
No le digas nada a mi mujer.
Es un secreto.
Guárdame el secreto.
I'd prefer that nobody knew.
Please don't let on to Jonas.
It must remain confidential that I am leaving.
I trust you to keep quiet about it.
I tell you this as a secret.
My family doesn't know yet.
This is not for sharing.
Can you promise not to tell?
Bitte vertraulich behandeln.
Es privado.
Mi mujer no debe saberlo.
"""
ORDINARY = """
I lost the private key.
I work on confidential computing.
The private key lies on the disk.
I use a private repository.
We keep the repository private.
I have private lessons.
I store the client secret in Vault.
We rotate secrets every week.
The secret manager is down.
Nobody knows how the parser works.
Tell me about private methods.
I told my sister about the trip.
The distance between the towns is large.
Do not share mutable state between threads.
I do not know Rust.
I keep my notes in a private wiki.
This is a private method.
It is a private class.
This is a secret key.
That is confidential computing.
I like secret gardens.
I moved between the two offices.
Please tell me more.
I don't tell jokes.
Don't forget the milk.
I never write tests.
I do not want to see this error.
My private key is 4096 bits.
The module is private.
The API is not public yet.
Nobody should use tabs.
No one can see the page.
I go to a private school.
The client must not know the address of the server.
We write integration tests for it.
Save this for later.
Remember this, please.
Do not log in as root.
Don't store passwords in git.
I keep it simple.
Is the port private?
Keep the answer short.
I have confidence in it.
With 95 % confidence it works.
Das Passwort steht im Tresor.
Ich weiß es nicht.
Niemand mag lange Besprechungen.
Das ist ein privater Schlüssel.
Wir sind unter uns gut organisiert.
Me gusta el café.
Nadie usa ese servicio.
Uso una clave privada.
Do not post to main.
I do not save money.
Please do not record meetings.
I would like to hear about it.
I do not like coffee.
I do not want to learn this.
My laptop is quiet.
Never say never.
I work from home, with my dog.
It is for you.
This gift is for you.
The fan is quiet.
Do not write tests for generated code.
I can't tell the two apart.
I cannot tell why it fails.
"""
#: Of the kinds that are private without a request; and sentences of software with the same words.
PRIVATE = """
I am allergic to penicillin.
I stopped taking warfarin.
I take Eliquis 5 mg.
I don't want my boss to know about the seizures.
My blood pressure is 160.
I am an alcoholic.
I used to smoke.
My address is Storgatan 12.
I live at Storgatan 12.
is diabetic
has a pacemaker
INR is 2.4
pension is 14000
left arm is paralysed
is HIV positive
had a stroke in July 2026
takes apixaban twice a day
My son is deaf.
I have debts.
I owe the bank 40000 kronor.
The code of my door is 4711.
My door code is 4711.
My PIN is 1234.
I am gay.
My brother is in prison.
Ich habe Epilepsie.
Tengo epilepsia.
Jag har diabetes.
"""
PUBLIC = """
The cache is disabled by default.
Technical debt slows us down.
The address of the server is in the settings.
The IP address is dynamic.
Pin the version of the library.
Each stroke of the brush shows.
The stroke width is 2.
We run smoke tests after each deploy.
The branch is blind to the change.
The deploy is in April, on 23 March at the latest.
The budget is 84,000 euro.
We address the issue in 3 steps.
The health check of the service fails.
The pull request is 5 MB.
The team owes us an answer.
"""


@pytest.mark.parametrize("text", PRIVATE.strip().splitlines())
def test_health_money_addresses_and_access_are_private_without_a_request(text):
    assert is_private(text)


@pytest.mark.parametrize("text", PUBLIC.strip().splitlines())
def test_sentences_of_work_with_the_same_words_are_not_private(text):
    assert not is_private(text)


@pytest.mark.parametrize("text", REQUESTS.strip().splitlines())
def test_a_request_for_secrecy_makes_the_text_private(text):
    around = f"I went to Lyon. {text} It rained."

    assert [asks_for_secrecy(each) for each in (text, text.lower(), around)] == [True, True, True]
    assert is_private(around)


@pytest.mark.parametrize("text", ORDINARY.strip().splitlines())
def test_an_ordinary_sentence_asks_for_no_secrecy(text):
    assert not asks_for_secrecy(text)
