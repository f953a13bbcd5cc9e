// Package llm is the model gateway: the only way from a run's agent to a model. Each call is
// metered, and paid before it is sent.
//
// Clients speak OpenAI's chat completions, responses and embeddings, Google's generateContent, or
// Anthropic's messages; upstreams speak one of them. If both speak the same, the request passes
// through, except the few members on which its price depends; otherwise it is translated by way
// of [request] and [delta].
//
// A call has these steps: find the upstreams that serve the model's name ([State], targets). For
// each in turn: bound the cost of the call, reserve that ([Purse]), send, pass on the answer while
// counting it (meter), settle. No call is sent without a grant, and each grant is settled once.
// A call ends with its run: a watch checks all calls four times a second.
package llm
