// Ask an endpoint with sparql-http-client what the test wants to know of it, and print what came as JSON.
import { Readable } from 'node:stream'
import ParsingClient from 'sparql-http-client/ParsingClient.js'
import StreamClient from 'sparql-http-client/StreamClient.js'

const [endpointUrl, storeUrl, graph] = process.argv.slice(2)
const client = new ParsingClient({ endpointUrl, updateUrl: endpointUrl })
const { store } = new StreamClient({ endpointUrl, storeUrl })
const text = term => term.value
const triple = quad => [quad.subject, quad.predicate, quad.object].map(text)

async function refusal (doing) {
  try {
    await doing()
    return null
  } catch (error) {
    return error.status ?? String(error)
  }
}

const told = {}
for (const operation of ['get', 'postUrlencoded', 'postDirect']) {
  const rows = await client.query.select('SELECT ?o { ?s <https://jido.ai/ontology#summary> ?o } ORDER BY ?o', { operation })
  told[operation] = rows.map(row => row.o.value)
}
told.truth = await client.query.ask('ASK { ?s ?p ?o }')
told.constructed = [...await client.query.construct('CONSTRUCT WHERE { ?s <https://jido.ai/ontology#summary> ?o }')].map(triple)
const term = client.factory.namedNode(graph)
told.graph = (await store.get(term).toArray()).length
told.union = (await store.get(client.factory.defaultGraph()).toArray()).length
told.update = await refusal(() => client.query.update('INSERT DATA { <urn:a> <urn:b> 1 }'))
told.put = await refusal(() => store.put(Readable.from([client.factory.quad(term, term, term, term)])))
told.malformed = await refusal(() => client.query.select('SELECT {'))
console.log(JSON.stringify(told))
