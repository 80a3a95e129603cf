"""Four weeks of dialogue of developers with their agent: most subjects recur, and some are mentioned once.

python developer_talk.py ROOT: prints the retrieval results of a new process for the questions, as a line of JSON.
"""

import json
import sys
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import jidomem
from jidomem.base.clock import Sources
from jidomem.extras.memoryos.config import MemoryOSConfig
from jidomem.extras.memoryos.segments import TierPolicy

MONDAY = datetime(2026, 10, 5, 9, tzinfo=UTC)
END = MONDAY + timedelta(days=26)
SETTINGS = TierPolicy(MemoryOSConfig(
    mtm_capacity=16, segment_capacity=12, mtm_fscore_threshold=0.25, heat_threshold=5, share_users=True
))  # fmt: skip
#: The questions and answers of each subject; {n} is another number in each exchange.
SUBJECTS = {
    "index": [
        ("The search index of the catalogue took {n} minutes to rebuild.",
         "The index holds titles and descriptions; without descriptions the rebuild takes half as long."),
        ("Does the search index know plural forms of words?", "Since batch {n} the index stems every word of a title."),
        ("A search for boots finds no shoes.", "The index has no synonyms yet; {n} of them wait in the backlog."),
        ("How large is the search index on disk?", "The index of the catalogue has {n} megabytes, on the fast disk."),
    ],
    "login": [
        ("Login with the phone code fails for {n} customers.",
         "The login service compares the code with the clock of the phone, which is off."),
        ("How long is a login session valid?", "A session ends {n} hours after the login, or when it is revoked."),
        ("Can the login token be read by scripts?", "No, the login token is in a cookie that scripts cannot read."),
        ("Who gets an alarm when {n} logins fail in a row?", "The login service tells the person on call."),
    ],
    "invoices": [
        ("Invoice {n} shows the wrong tax.", "The invoice took the tax of the country of the card."),
        ("Are invoices sent as PDF?", "Invoices are PDF files, numbered without gaps; {n} were sent last night."),
        ("What happens to an invoice that bounces?", "The invoice is sent again twice, then it is {n} of a list."),
        ("May an invoice be changed?", "Never: a credit note cancels the invoice, and invoice {n} is written anew."),
    ],
    "tests": [
        ("The browser tests were red {n} times this week.", "The browser tests race with the animation of the menu."),
        ("How many tests run on a branch?", "On a branch {n} unit tests run, browser tests run at night."),
        ("Can the flaky browser tests be put apart?", "The flaky tests have a mark, and are tried {n} times."),
        ("Which browser do the tests use?", "The browser tests use Firefox {n}, without a window."),
    ],
    "database": [
        ("The nightly backup of the database has {n} gigabytes.", "The backup holds the audit table, never pruned."),
        ("Which database migration locked the orders?", "Migration {n} of the database added a column with a default."),
        ("Is the database replica behind?", "The database replica is {n} seconds behind while the backup runs."),
        ("How do we restore the database?", "A restore of the database from the backup takes {n} minutes."),
    ],
    "images": [
        ("Product images load slowly on phones.", "The images are {n} kilobytes each; smaller thumbnails would do."),
        ("Which format do the product images have?", "Images are WebP since upload {n}, before that they were JPEG."),
        ("Who crops the images?", "The upload crops images to a square, {n} pixels wide."),
        ("An image shows the wrong product.", "Image {n} was cached by the name of its file; names have a hash now."),
    ],
    "mail": [
        ("The newsletter went to {n} addresses twice.", "The mail queue began anew, the newsletter unmarked."),
        ("Does the mail provider limit us?", "The mail provider takes {n} messages a minute, the newsletter waits."),
        ("How does somebody leave the newsletter?", "Every mail has a link that unsubscribes; {n} used it."),
        ("Mails land in spam.", "The newsletter mails lack a signature of the domain since server {n}."),
    ],
    "stock": [
        ("The warehouse counts {n} chairs, the shop shows none.", "The stock feed of the warehouse was late."),
        ("When is stock reserved?", "Stock is reserved for {n} minutes once a cart goes to the checkout."),
        ("Can stock be negative?", "Stock of the warehouse fell to minus {n} when two carts took the last one."),
        ("Who corrects the stock?", "The warehouse sends a correction of the stock, number {n}, with its reason."),
    ],
}  # fmt: skip
#: The exchanges that occur once.
ONCE = [
    ("Is there parking behind the office?", "Parking is at the harbour, spot 14."),
    ("The coffee machine leaks.", "A plumber comes on Thursday."),
    ("Which font has the logo?", "The logo is drawn, and has no font."),
    ("My train is late.", "The meeting begins at ten then."),
    ("Who waters the plants?", "Nobody, they are made of plastic."),
    ("Where is the projector?", "The projector is in the cupboard of room seven."),
    ("What does the fire alarm mean?", "It is an exercise, everybody meets outside."),
    ("Is Friday a holiday?", "Friday is the founding day of the town."),
]
#: The statements of the two developers about themselves and their rules, by day and subject.
STATEMENTS = {
    (0, "index"): "I work as a search engineer. Always rebuild the index in production before a release.",
    (0, "login"): "I prefer short answers about the login.",
    (4, "index"): "I don't like magic numbers in the index.",
    (4, "login"): "My login PIN is 4711.",
    (8, "index"): "I live in Lisbon, and the index is rebuilt while I sleep.",
}
DEVELOPERS = ("ana", "ben")
QUESTIONS = {
    "index": ["How long does a rebuild of the search index take?", "Does the index of the catalogue stem words?"],
    "login": ["How long is a session valid after the login?", "Why does login with the phone code fail?"],
    "invoices": ["May an invoice be changed later?", "Which tax does an invoice show?"],
    "tests": ["Why are the browser tests red?", "How often are flaky tests tried?"],
    "database": ["How long does a restore of the database take?", "How large is the backup of the database?"],
    "images": ["Which format do product images have?", "Why do images load slowly?"],
    "mail": ["How does one leave the newsletter?", "Why did the newsletter go out twice?"],
    "stock": ["When is stock reserved?", "Can the stock of the warehouse be negative?"],
}
RULE = "always rebuild the index in production before a release"


@dataclass(frozen=True)
class Exchange:
    """One exchange: its subject, the asking developer, its texts, and its time."""

    subject: str
    who: str
    query: str
    response: str
    at: datetime


def days():
    """Return the exchanges of each working day: two subjects a day, each again every fourth day, and a single one."""
    subjects, once = [*SUBJECTS], [*ONCE]
    for day in range(20):
        at, exchanges = MONDAY + timedelta(days=day + 2 * (day // 5)), []
        for half in (0, 1):
            subject, who = subjects[(2 * day + half) % len(subjects)], DEVELOPERS[half]
            for number, (query, response) in enumerate(SUBJECTS[subject]):
                query = f"{STATEMENTS[day, subject]} {query}" if number == 0 and (day, subject) in STATEMENTS else query
                n = 100 + 7 * day + number
                exchanges.append(Exchange(subject, who, query.format(n=n), response.format(n=n), at))
                at += timedelta(minutes=3)
            at += timedelta(hours=3)
        if day % 2 == 0 and once:
            exchanges.append(Exchange("once", DEVELOPERS[0], *once.pop(0), at))
        yield exchanges


def open_agent(root, now, **options):
    """Open the memory at *root* with the clock *now*, and the agent of the project."""
    memory = jidomem.open(root, project="shop", agent="helper", sources=Sources(now=now))
    return memory, memory.os(policy=SETTINGS, **options)


def answers(helper):
    """Return the retrieval results for each question, as plain values."""
    questions_asked = [question for questions in QUESTIONS.values() for question in questions]
    return [helper.retrieve(question, about=("user", "ana"), visiting=False).to_dict() for question in questions_asked]


if __name__ == "__main__":
    memory, helper = open_agent(sys.argv[1], lambda: END)
    json.dump({"answers": answers(helper), "jobs": len(helper.jobs()), "again": helper.promote(0.8)}, sys.stdout)
    memory.close()
