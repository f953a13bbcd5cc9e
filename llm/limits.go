package llm

import "time"

const (
	// maxBody bounds a request: a long context with a few images.
	maxBody = 16 << 20
	// maxAnswer bounds an answer that comes in one piece, maxEvent one event of a
	// stream (a whole response may be repeated in the last one), maxError what is
	// read of an upstream's error, and maxMessage what is told of it.
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
	// firstWait doubles up to maxWait between attempts, less a random half;
	// an upstream's Retry-After counts up to maxWait, and such a half is added to it.
	// retryTime bounds all waiting of one call: agents wait better than they give up,
	// but not for ever.
	firstWait = 250 * time.Millisecond
	maxWait   = 8 * time.Second
	retryTime = 30 * time.Second
	// defaultFirstByte is how long an upstream may think before its answer begins:
	// a small machine that reads a long prompt takes minutes. defaultIdle is how
	// long a stream may stand still. maxCall bounds a whole call.
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
	// lookEvery is how often calls are compared with what their runs may do: well
	// below the margin of a lease.
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
	// mostBilled is the most, in dollars, that an upstream is believed to have charged
	// for one call: a million tokens of the dearest model cost a tenth of it.
	mostBilled = 10_000
	// imageTokens is more than any upstream counts for an image.
	imageTokens = 50_000
	// maxTokenBytes is how many bytes a token has at most, over a whole answer;
	// eventSlack how many more pieces than tokens a stream may have.
	maxTokenBytes = 16
	eventSlack    = 64
)
