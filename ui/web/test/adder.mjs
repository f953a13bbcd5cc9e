// node test/adder.mjs: a process that provides a service: it answers "ping", and "add" with the sum of its parameters.
const { SELVAGE_API_URL: url, SELVAGE_API_KEY: key } = process.env
const ask = async (path, body) => (await fetch(`${url}/api/v1/ipc/${path}`, { method: 'POST', headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' }, body: JSON.stringify(body) })).json()

for (;;) {
  const { messages = [] } = await ask('receive', { wait_ms: 20_000 }).catch(() => new Promise((done) => setTimeout(() => done({}), 500)))
  for (const { id, payload } of messages) {
    console.log(JSON.stringify(payload))
    const { method, params } = payload.json ?? payload
    await ask(`messages/${id}/reply`, { json: method === 'add' ? { result: params.reduce((a, b) => a + b, 0) } : method === 'ping' ? { result: 'pong' } : { error: 'it only adds' } })
  }
}
