package a2a

import (
	"cmp"
	"errors"
	"fmt"
	"net/url"
	"strings"

	"github.com/selvage-mesh/selvage/api"
	"github.com/selvage-mesh/selvage/company/entity"
	"github.com/selvage-mesh/selvage/company/skill"
	"github.com/selvage-mesh/selvage/ledger"
)

const (
	// CardPath is where a card is, below the address of its agent.
	CardPath = "/.well-known/agent-card.json"
	// agentsExtension marks the list of agents in the card of the mesh.
	agentsExtension = "urn:selvage:a2a:agents:v1"
)

// Routes are the cards.
func Routes() []api.Route {
	const tag = "a2a"
	return []api.Route{
		{Method: "GET", Path: CardPath, Tag: tag, Who: api.Public, NoTool: true, Out: AgentCard{}, Handle: meshCard,
			Summary: "Read the A2A card of the mesh: its agents, as far as the caller may see them"},
		{Method: "GET", Path: Root + "/{agent}" + CardPath, Tag: tag, NoTool: true, Out: AgentCard{}, Handle: agentCard,
			Summary: "Read the A2A card of an agent"},
	}
}

type (
	// An AgentCard says what an agent can do and how it is reached.
	AgentCard struct {
		Name         string                  `json:"name"`
		Description  string                  `json:"description"`
		Interfaces   []CardInterface         `json:"supportedInterfaces"`
		Provider     cardProvider            `json:"provider"`
		Version      string                  `json:"version"`
		Capabilities cardCapabilities        `json:"capabilities"`
		Schemes      map[string]cardScheme   `json:"securitySchemes"`
		Requirements []map[string]cardScoped `json:"securityRequirements"`
		Inputs       []string                `json:"defaultInputModes"`
		Outputs      []string                `json:"defaultOutputModes"`
		Skills       []cardSkill             `json:"skills"`
	}
	// A CardInterface is an address and what is spoken there.
	CardInterface struct {
		URL     string `json:"url"`
		Binding string `json:"protocolBinding"`
		Tenant  string `json:"tenant,omitempty"`
		Version string `json:"protocolVersion"`
	}
	cardProvider struct {
		URL          string `json:"url"`
		Organization string `json:"organization"`
	}
	cardCapabilities struct {
		Streaming  bool            `json:"streaming"`
		Push       bool            `json:"pushNotifications"`
		Extended   bool            `json:"extendedAgentCard"`
		Extensions []cardExtension `json:"extensions,omitempty"`
	}
	cardExtension struct {
		URI         string     `json:"uri"`
		Description string     `json:"description"`
		Params      cardAgents `json:"params"`
	}
	cardAgents struct {
		Agents []cardAgent `json:"agents"`
	}
	cardAgent struct {
		ID          string `json:"id"`
		Name        string `json:"name"`
		Role        string `json:"role"`
		CompanyID   string `json:"companyId"`
		CompanyName string `json:"companyName"`
		URL         string `json:"url"`
		Card        string `json:"card"`
	}
	cardScheme struct {
		HTTP cardHTTPScheme `json:"httpAuthSecurityScheme"`
	}
	cardHTTPScheme struct {
		Description string `json:"description"`
		Scheme      string `json:"scheme"`
	}
	cardScoped map[string]cardScopes
	cardScopes struct{}
	cardSkill  struct {
		ID          string   `json:"id"`
		Name        string   `json:"name"`
		Description string   `json:"description"`
		Tags        []string `json:"tags"`
	}
)

// modes are the media types of messages and artifacts.
var modes = []string{"text/plain", "text/markdown", "application/json", "application/octet-stream"}

// card returns what all cards have in common, for an address below this node's.
func card(rc *api.Request, at, tenant string) AgentCard {
	base := rc.Base() + at
	return AgentCard{
		Interfaces: []CardInterface{
			{URL: base, Binding: "JSONRPC", Tenant: tenant, Version: Version},
			{URL: base, Binding: "HTTP+JSON", Tenant: tenant, Version: Version},
		},
		Provider:     cardProvider{URL: rc.Base(), Organization: cmp.Or(rc.Server.Cfg.Name, "selvage")},
		Version:      cmp.Or(rc.Server.Cfg.Version, "dev"),
		Capabilities: cardCapabilities{Streaming: true, Push: true, Extended: true},
		Schemes: map[string]cardScheme{"bearer": {cardHTTPScheme{Scheme: "Bearer",
			Description: "a board key, an agent key or the token of a run; on loopback in local_trusted mode none is needed"}}},
		Requirements: []map[string]cardScoped{{"schemes": {"bearer": cardScopes{}}}},
		Inputs:       modes, Outputs: modes,
	}
}

// meshCard answers the card of the mesh. Whoever has no credential where one is needed sees no company and no agent.
func meshCard(rc *api.Request) (api.Response, error) {
	rc.Actor, rc.Credential = ledger.Actor{}, ledger.Credential{}
	known := true
	if err := rc.Authenticate(); errors.Is(err, api.ErrNobody) {
		known = false
	} else if err != nil {
		return api.Response{}, err
	}
	c := card(rc, Root, "")
	c.Name = "Selvage"
	c.Description = "Agents of the companies of this mesh. A task becomes an issue of a company. The tenant of a " +
		"request is the ID of the agent that is meant."
	if !known {
		c.Description += " Show a credential to see who they are."
		c.Skills = []cardSkill{taskSkill}
		return api.OK(c), nil
	}
	err := rc.View(func(tx *ledger.Tx) error {
		c.Skills = nil
		var list []cardAgent
		for _, of := range seen(tx, rc) {
			for _, a := range entity.AgentsOf(tx, of.ID, false) {
				if a.Status == entity.AgentPendingApproval || len(list) >= maxListedAgents {
					continue
				}
				at := rc.Base() + Root + "/" + a.ID
				list = append(list, cardAgent{a.ID, a.Name, a.Role, string(of.ID), of.Name, at, at + CardPath})
				c.Skills = append(c.Skills, cardSkill{ID: a.ID, Name: a.Name, Description: about(a, of),
					Tags: []string{of.Name, a.Role}})
			}
		}
		if len(list) > 0 {
			c.Capabilities.Extensions = []cardExtension{{agentsExtension, "The agents, with the addresses of their own cards.",
				cardAgents{list}}}
		} else {
			c.Skills = []cardSkill{taskSkill}
		}
		return nil
	})
	return api.OK(c), err
}

// taskSkill is what every agent can do.
var taskSkill = cardSkill{ID: "task", Name: "Work on a task",
	Description: "Works on what the message says, as an issue of its company, and leaves its result as artifacts.",
	Tags:        []string{"task"}}

// about describes an agent in one sentence or two.
func about(a entity.Agent, of entity.Company) string {
	s := fmt.Sprintf("%s of %s", cmp.Or(string(a.Title), a.Role), of.Name)
	if c := strings.TrimSpace(string(a.Capabilities)); c != "" {
		s += ". " + c
	}
	return s
}

// agentCard answers the card of one agent.
func agentCard(rc *api.Request) (api.Response, error) {
	c, err := cardOf(rc, rc.Path("agent"))
	if f, ok := errors.AsType[*fault](err); ok {
		err = api.Invalid("%s", f.text)
	}
	return api.OK(c), err
}

// cardOf returns the card of an agent.
func cardOf(rc *api.Request, ref string) (c AgentCard, err error) {
	err = rc.View(func(tx *ledger.Tx) error {
		a, err := find(tx, rc, ref)
		if err != nil {
			return err
		}
		of, _ := entity.CompanyOf(tx, a.Company)
		c = card(rc, Root+"/"+url.PathEscape(a.ID), "")
		c.Name, c.Description = a.Name, about(a, of)
		c.Capabilities.Extended = false
		c.Skills = []cardSkill{taskSkill}
		for _, key := range skill.SkillsOfAgent(tx, a.Company, a.ID) {
			if s, ok := skill.SkillOf(tx, a.Company, key); ok {
				c.Skills = append(c.Skills, cardSkill{ID: s.Slug, Name: s.Name, Description: cmp.Or(string(s.Description), s.Name),
					Tags: []string{"skill"}})
			}
		}
		return nil
	})
	return c, err
}
