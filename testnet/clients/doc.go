// Package clients runs clients of others, unchanged, against a mesh: Paperclip's command
// line and MCP server as they are published, clients that generators make of the
// description of the API, and the official clients of MCP. It has tests only.
package clients
