// Package node is one peer put together: config, boot, run, close.
//
// It opens the store, loads the identity, founds a mesh or joins one, starts
// transport, discovery, consensus, ledger, scheduler, adapters and the HTTP
// API, and closes them in the reverse order. What a lower room needs of a
// higher one is a value that is handed in here; there is no logic of its own.
package node
