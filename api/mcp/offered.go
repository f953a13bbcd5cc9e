package mcp

import (
	"context"
	"encoding/json"
	"net/url"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// ofOffer is the prefix of the names of a company's own tools, and of no others.
const ofOffer = "tool_"

// An offer is a tool of a company, as its API shows it.
type offer struct {
	Name, Description string
	Parameters        json.RawMessage
	Rests             bool
	Versions          []struct{ Revoked bool }
}

// nameOfOffer is the name of a company's tool among all tools: of watch/check_page it is tool_watch_check_page.
func nameOfOffer(name string) string {
	return shorten(ofOffer + strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' || r == '-' {
			return r
		}
		return '_'
	}, name))
}

// schema returns the arguments of a tool: an object, whatever its parameters say.
func (o offer) schema() json.RawMessage {
	var kind struct {
		Type any `json:"type"`
	}
	if json.Unmarshal(o.Parameters, &kind) != nil || kind.Type != "object" {
		return json.RawMessage(`{"type":"object"}`)
	}
	return o.Parameters
}

// offers returns the tools of the caller's company that can be executed; none if it has no company, or may not see it.
func offers(ctx context.Context, c *Caller) []offer {
	if c.Company == "" && c.learn(ctx) != nil {
		return nil
	}
	b, err := c.call(ctx, "", "GET", "/api/companies/"+url.PathEscape(c.Company)+"/tools", nil)
	var all, out []offer
	if err != nil || json.Unmarshal(b, &all) != nil {
		return nil
	}
	for _, o := range all {
		if n := len(o.Versions); !o.Rests && n > 0 && !o.Versions[n-1].Revoked {
			out = append(out, o)
		}
	}
	return out
}

// addOffers adds the tools of the caller's company to a list, as far as there is room; others can be called by name.
func addOffers(ctx context.Context, c *Caller, list *mcp.ListToolsResult) {
	left := maxOfferBytes
	for i, o := range offers(ctx, c) {
		t := &mcp.Tool{Name: nameOfOffer(o.Name), Description: o.Description, InputSchema: o.schema()}
		if left -= len(o.Description) + len(o.Parameters) + 2*len(o.Name); left < 0 || i == maxOffers {
			return
		}
		list.Tools = append(list.Tools, t)
	}
}

// callOffer executes a tool of the caller's company in the node's sandbox, or by a service. The gate and the agent's
// rights decide, as they do for the route.
func callOffer(ctx context.Context, c *Caller, name string, args json.RawMessage) *mcp.CallToolResult {
	for _, o := range offers(ctx, c) {
		if nameOfOffer(o.Name) != name {
			continue
		}
		if len(args) == 0 || string(args) == "null" {
			args = json.RawMessage("{}")
		}
		b, err := c.call(ctx, name, "POST", "/api/companies/"+url.PathEscape(c.Company)+"/tools/"+url.PathEscape(o.Name)+
			"/execute", encode(map[string]json.RawMessage{"input": args}))
		var ended struct {
			ExitCode *int
			Stdout   string
			Error    json.RawMessage
		}
		if err == nil && json.Unmarshal(b, &ended) == nil && ended.ExitCode != nil && *ended.ExitCode == 0 {
			return result(encode(ended.Stdout), nil)
		}
		said := result(b, err)
		said.IsError = true
		return said
	}
	return result(nil, badArgument{"There is no tool " + cut(name) + " in this company, or its app does not run"})
}
