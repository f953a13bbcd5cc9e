// Package llm is the model gateway: the one way from a run's agent to a model, metered and paid before it is used.
//
// Clients speak OpenAI's chat completions, responses and embeddings, or
// Anthropic's messages; upstreams speak one of them. What both speak passes
// through but for the few members that money depends on; the rest is translated
// by way of [request] and [delta].
//
// A call goes like this: find out which upstreams answer to the model's name
// ([State], targets), and for each in turn: bound what the call can cost,
// reserve that ([Purse]), send, hand on what comes back while counting it
// (meter), settle. Nothing leaves without a grant, and each grant is settled once.
// A call ends with its run: a watch looks at all calls four times a second.
package llm
