// Package blob keeps content by its hash, on several nodes: attachments, images
// and whatever else is too large for a command.
//
// A [Store] is the blobs of one node, on its disk. A [Keeper] makes of the stores
// of all nodes one: it spreads a new blob over the nodes that shall have it,
// fetches from whoever has it what this node does not, copies again what was
// lost, and throws away what nothing refers to. Who refers to a blob is
// replicated state, which the rules keep; apply never reads a blob.
//
// # On disk
//
// A blob is the file <first two hex digits>/<64 hex digits of its SHA-256> below
// the store's directory, nothing but its bytes. A file there was synced before
// it got its name, and so was its name before anybody was told. Its modification
// time says when somebody last put it. Beside one of more than one chunk is <name>.sums, the
// sums of its chunks (see sums). tmp/ holds what is being written, and is
// emptied when the store is opened. Other files are left alone.
//
// # Between nodes
//
// Whoever opens a stream sends a request (see [AppendRequest]); the answer
// begins with a head of 9 bytes:
//
//	status (1) | size (8, big endian)
//
// Of a get, status held is followed by the bytes that were asked for; they end
// early when the sender meets an error. Of a put, status send asks for the
// bytes, after which a second head says what became of them; status held says
// that they are there already. Of a has, or a check, status held or missing is all. size is
// the whole blob's. Unknown statuses count as a no.
package blob
