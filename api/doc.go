// Package api is HTTP on every node: route table, auth, OpenAPI, events.
//
// One table of routes ([Server.Routes]) gives the handlers and the OpenAPI document. A
// handler decodes, authenticates, submits a command or runs a query, and encodes; package
// company decides what is allowed. Refusals become statuses in one table (errors.go).
// Failures are a 500 and a log line.
package api
