package llm

import "time"

const (
	// maxBody bounds a request: a long context with a few images.
	maxBody = 16 << 20
	// maxAnswer bounds an answer that is not streamed, maxEvent one event of a stream (the last
	// one may repeat the whole response), maxError the part of an upstream's error that is read,
	// and maxMessage the part that is shown. All are in bytes.
	maxAnswer  = 32 << 20
	maxEvent   = 8 << 20
	maxError   = 64 << 10
	maxMessage = 1 << 10
	// maxCalls bounds the calls of one node at a time: each holds a request, an
	// event and two connections.
	maxCalls = 256
	// maxTargets bounds the upstreams that are asked for one call, maxAttempts how
	// often each is asked.
	maxTargets  = 4
	maxAttempts = 3
	// firstWait doubles up to maxWait between attempts, less a random half. An upstream's
	// Retry-After counts up to maxWait, and a random half is added to it. retryTime bounds the
	// total wait of one call: an agent is better served by waiting than by an error, but not for
	// ever.
	firstWait = 250 * time.Millisecond
	maxWait   = 8 * time.Second
	retryTime = 30 * time.Second
	// defaultFirstByte bounds the time until an answer begins: a small machine needs minutes to
	// read a long prompt. defaultIdle bounds the pause between two pieces of a stream. maxCall
	// bounds a whole call.
	defaultFirstByte = 5 * time.Minute
	defaultIdle      = 2 * time.Minute
	maxCall          = 30 * time.Minute
	// bodyWait bounds the wait for the request's body, writeWait that for a client
	// to take a piece of the answer.
	bodyWait  = 30 * time.Second
	writeWait = 30 * time.Second
	// dialWait bounds connecting to an upstream; testWait a whole test or list.
	dialWait = 10 * time.Second
	testWait = 15 * time.Second
	// lookEvery is how often calls are checked against the state of their runs: well below the
	// margin of a lease.
	lookEvery = 250 * time.Millisecond
	// settleWait bounds settling, which is local.
	settleWait = 10 * time.Second
	// modelsAge is how long an upstream's list of models is believed; maxModels
	// bounds it.
	modelsAge = time.Minute
	maxModels = 1000

	// defaultOutput is the bound of an answer for which the client names none:
	// more than agents' turns have, and affordable.
	defaultOutput = 8192
	// leastOutput is the shortest answer that is worth a call when money is short.
	leastOutput = 256
	// maxOutput bounds what a client may ask for.
	maxOutput = 1 << 20
	// maxChoices bounds the answers to one request.
	maxChoices = 8
	// frameTokens is more than what upstreams put around a request by themselves:
	// templates, dates, instructions for the use of tools.
	frameTokens = 2048
	// mostBilled bounds the plausible bill for one call, in dollars: a million tokens of the most
	// expensive model cost a tenth of it.
	mostBilled = 10_000
	// imageTokens is more than any upstream counts for an image.
	imageTokens = 50_000
	// maxTokenBytes is how many bytes a token has at most, over a whole answer;
	// eventSlack how many more pieces than tokens a stream may have.
	maxTokenBytes = 16
	eventSlack    = 64
)
