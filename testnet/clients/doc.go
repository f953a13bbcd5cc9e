// Package clients runs Paperclip's own clients, unchanged, against a mesh: the
// command line and the MCP server as they are published. It has tests only.
package clients
