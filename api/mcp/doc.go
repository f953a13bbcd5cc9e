// Package mcp offers the HTTP API as tools of the Model Context Protocol, over stdio and
// over streamable HTTP: the contract's 41 by their names, and one for each other route.
// It decides nothing: a tool is an HTTP call with the caller's own credential, and its
// answer is that call's.
package mcp
