package api

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/selvage-mesh/selvage/company"
	"github.com/selvage-mesh/selvage/company/conceal"
	"github.com/selvage-mesh/selvage/company/core"
	"github.com/selvage-mesh/selvage/company/money"
	"github.com/selvage-mesh/selvage/company/people"
	"github.com/selvage-mesh/selvage/company/skill"
	"github.com/selvage-mesh/selvage/ledger"
)

// newAgent is the body that creates an agent.
type newAgent struct {
	Name               string               `json:"name" minLength:"1" maxLength:"500" maxBytes:"500"`
	Role               string               `json:"role,omitempty" enum:"ceo,cto,cmo,cfo,security,engineer,designer,pm,qa,devops,researcher,general"`
	Title              Opt[string]          `json:"title" maxLength:"500" maxBytes:"500"`
	Icon               Opt[string]          `json:"icon" maxLength:"100"`
	ReportsTo          Opt[string]          `json:"reportsTo" format:"uuid"`
	Capabilities       Opt[string]          `json:"capabilities" maxLength:"50000" maxBytes:"50000"`
	AdapterType        string               `json:"adapterType,omitempty" minLength:"1" maxLength:"100"`
	AdapterConfig      Opt[json.RawMessage] `json:"adapterConfig" maxBytes:"65536"`
	RuntimeConfig      Opt[json.RawMessage] `json:"runtimeConfig" maxBytes:"65536"`
	DefaultEnvironment Opt[string]          `json:"defaultEnvironmentId" format:"uuid"`
	BudgetMonthlyCents int64                `json:"budgetMonthlyCents,omitempty" minimum:"0" maximum:"1000000000000"`
	Permissions        *agentGrant          `json:"permissions,omitempty"`
	Metadata           Opt[json.RawMessage] `json:"metadata" maxBytes:"65536"`
	ContextMode        string               `json:"contextMode,omitempty" enum:"thin,fat"`
	DesiredSkills      []json.RawMessage    `json:"desiredSkills,omitempty" maxItems:"200" types:"string,object" maxBytes:"8192"`
	Instructions       *newInstructions     `json:"instructionsBundle,omitempty"`
}

// newInstructions are the files that tell a new agent what to do.
type newInstructions struct {
	Entry string          `json:"entryFile,omitempty" minLength:"1" maxLength:"400"`
	Files json.RawMessage `json:"files" types:"object" maxBytes:"196608"` // text by path
}

// texts returns the files by their paths.
func (n newInstructions) texts() (files map[string]string, err error) {
	if json.Unmarshal(n.Files, &files) != nil || files == nil {
		return nil, ValidationError(Issue{Code: "invalid_type", Expected: "record", Path: []any{"instructionsBundle", "files"}, Message: "Invalid input: expected the text of each file by its path"})
	}
	for _, text := range files {
		if len(text) > skill.MaxInstructionFile {
			return nil, ValidationError(Issue{Code: "too_big", Path: []any{"instructionsBundle", "files"}, Maximum: new(float64(skill.MaxInstructionFile)), Inclusive: new(true),
				Message: fmt.Sprintf("Too big: expected each file to have <=%d bytes", skill.MaxInstructionFile)})
		}
	}
	return files, nil
}

// patchAgent is the body that changes an agent.
type patchAgent struct {
	Name               *string              `json:"name,omitempty" minLength:"1" maxLength:"500" maxBytes:"500" nullable:"false"`
	Role               string               `json:"role,omitempty" enum:"ceo,cto,cmo,cfo,security,engineer,designer,pm,qa,devops,researcher,general"`
	Title              Opt[string]          `json:"title" maxLength:"500" maxBytes:"500"`
	Icon               Opt[string]          `json:"icon" maxLength:"100"`
	ReportsTo          Opt[string]          `json:"reportsTo" format:"uuid"`
	Capabilities       Opt[string]          `json:"capabilities" maxLength:"50000" maxBytes:"50000"`
	AdapterType        string               `json:"adapterType,omitempty" minLength:"1" maxLength:"100"`
	AdapterConfig      Opt[json.RawMessage] `json:"adapterConfig" maxBytes:"65536" nullable:"false"`
	ReplaceConfig      bool                 `json:"replaceAdapterConfig,omitempty"`
	RuntimeConfig      Opt[json.RawMessage] `json:"runtimeConfig" maxBytes:"65536" nullable:"false"`
	DefaultEnvironment Opt[string]          `json:"defaultEnvironmentId" format:"uuid"`
	BudgetMonthlyCents *int64               `json:"budgetMonthlyCents,omitempty" minimum:"0" maximum:"1000000000000" nullable:"false"`
	Metadata           Opt[json.RawMessage] `json:"metadata" maxBytes:"65536"`
	ContextMode        string               `json:"contextMode,omitempty" enum:"thin,fat"`
	// Status does what the routes do that pause an agent, let it go on, or end it.
	Status string `json:"status,omitempty" enum:"active,paused,idle,running,error,pending_approval,terminated"`
	// These have routes of their own; here they are a 422 that names the route.
	Permissions   Opt[json.RawMessage] `json:"permissions"`
	DesiredSkills Opt[json.RawMessage] `json:"desiredSkills" types:"array" nullable:"false"`
	Instructions  Opt[json.RawMessage] `json:"instructionsBundle" nullable:"false"`
}

// agentGrant changes what an agent may do.
type agentGrant struct {
	CreateAgents *bool `json:"canCreateAgents,omitempty" nullable:"false"`
	CreateSkills *bool `json:"canCreateSkills,omitempty" nullable:"false"`
	AssignTasks  *bool `json:"canAssignTasks,omitempty" nullable:"false"`
}

// agentPermissions is the body that changes what an agent may do.
type agentPermissions struct {
	CreateAgents bool  `json:"canCreateAgents"`
	AssignTasks  bool  `json:"canAssignTasks"`
	CreateSkills *bool `json:"canCreateSkills,omitempty" nullable:"false"`
}

// An agentRow is an agent as it is shown: its row without secrets, and what
// other rows say of it.
type agentRow struct {
	company.Agent
	AdapterConfig json.RawMessage  `json:"adapterConfig"`
	RuntimeConfig json.RawMessage  `json:"runtimeConfig"`
	BudgetMonthly core.Money       `json:"budgetMonthlyCents"`
	SpentMonthly  core.Money       `json:"spentMonthlyCents"`
	Held          core.Money       `json:"heldCents"` // set aside for calls under way
	Metadata      json.RawMessage  `json:"metadata"`
	ContextMode   string           `json:"contextMode" enum:"thin,fat"`
	URLKey        string           `json:"urlKey"`
	OrgHealth     people.OrgHealth `json:"orgChainHealth"`
}

// An agentDetail is an agent by itself.
type agentDetail struct {
	agentRow
	ChainOfCommand []people.Superior `json:"chainOfCommand"`
	Access         people.Access     `json:"access"`
}

// An agentConfiguration is how an agent is invoked.
type agentConfiguration struct {
	ID            string              `json:"id"`
	Company       string              `json:"companyId"`
	Name          string              `json:"name"`
	Role          string              `json:"role"`
	Title         core.NullText       `json:"title"`
	Status        company.AgentStatus `json:"status"`
	ReportsTo     core.NullText       `json:"reportsTo"`
	AdapterType   string              `json:"adapterType"`
	AdapterConfig json.RawMessage     `json:"adapterConfig"`
	RuntimeConfig json.RawMessage     `json:"runtimeConfig"`
	Permissions   company.Permissions `json:"permissions"`
	UpdatedAt     core.Time           `json:"updatedAt"`
}

func showAgent(tx *ledger.Tx, a company.Agent, now time.Time) agentRow {
	limit, spent := money.AgentBudget(tx, a.Company, a.ID, core.TimeOf(now))
	row := agentRow{Agent: a, AdapterConfig: conceal.RedactConfig(a.AdapterConfig), RuntimeConfig: conceal.RedactConfig(a.RuntimeConfig),
		BudgetMonthly: limit, SpentMonthly: spent, Held: money.MoneyHeld(tx, a.Company, company.ScopeAgent, a.ID), Metadata: rawJSON(nil), ContextMode: a.Mode(), URLKey: a.URLKey(), OrgHealth: people.OrgHealthOf(tx, a)}
	if len(a.Metadata) > 0 {
		row.Metadata = conceal.RedactConfig(a.Metadata)
	}
	// The embedded row's own configurations are not shown; they are not carried either.
	row.Agent.AdapterConfig, row.Agent.RuntimeConfig, row.Agent.Metadata = nil, nil, nil
	return row
}

func detailAgent(tx *ledger.Tx, a company.Agent, now time.Time) agentDetail {
	return agentDetail{showAgent(tx, a, now), people.ChainOfCommand(tx, a), people.AccessOf(a)}
}

func configureAgent(a company.Agent) agentConfiguration {
	return agentConfiguration{ID: a.ID, Company: a.Company, Name: a.Name, Role: a.Role, Title: a.Title, Status: a.Status, ReportsTo: a.ReportsTo, AdapterType: a.AdapterType,
		AdapterConfig: conceal.RedactConfig(a.AdapterConfig), RuntimeConfig: conceal.RedactConfig(a.RuntimeConfig), Permissions: a.Permissions, UpdatedAt: a.UpdatedAt}
}

func agentRoutes() []Route {
	const tag, one = "agents", "/api/agents/{id}"
	change := func(verb, kind, summary string) Route {
		return Route{Method: "POST", Path: one + "/" + verb, Tag: tag, Summary: summary, Who: Board, Query: byName(), Out: agentRow{},
			Handle: func(rc *Request) (Response, error) { return changeAgent(rc, kind) }}
	}
	return []Route{
		{Method: "GET", Path: "/api/companies/{companyId}/agents", Tag: tag, Summary: "List agents", Out: []agentRow{}, Handle: listAgents,
			Query: []Param{{Name: "includeTerminated", Type: "boolean", Doc: "also those that were terminated"}}},
		{Method: "POST", Path: "/api/companies/{companyId}/agents", Tag: tag, Summary: "Create an agent", Who: Board, In: newAgent{}, Out: agentRow{}, Status: 201, Handle: createAgent},
		{Method: "GET", Path: "/api/companies/{companyId}/agent-configurations", Tag: tag, Summary: "List how agents are invoked", Who: Board, Out: []agentConfiguration{}, Handle: listConfigurations},
		{Method: "GET", Path: "/api/agents/me", Tag: tag, Summary: "Read the agent that asks", Who: Agent, Out: agentDetail{}, Handle: readMe},
		{Method: "GET", Path: one, Tag: tag, Summary: "Read an agent by ID or name", Query: byName(), Out: agentDetail{}, Handle: readAgent},
		{Method: "PATCH", Path: one, Tag: tag, Summary: "Change an agent", Query: byName(), In: patchAgent{}, Out: agentRow{}, Handle: updateAgent},
		{Method: "DELETE", Path: one, Tag: tag, Summary: "Delete an agent", Who: Board, Query: byName(), Out: okay{}, Handle: deleteAgent},
		change("pause", company.KindAgentPause, "Pause an agent"), change("resume", company.KindAgentResume, "Let an agent go on"),
		change("clear-error", company.KindAgentResume, "Let an agent go on after an error"), change("terminate", company.KindAgentTerminate, "End an agent for good"),
		{Method: "PATCH", Path: one + "/permissions", Tag: tag, Summary: "Change what an agent may do", Who: Board, Query: byName(), In: agentPermissions{}, Out: agentDetail{}, Handle: permitAgent},
		{Method: "GET", Path: one + "/configuration", Tag: tag, Summary: "Read how an agent is invoked", Query: byName(), Out: agentConfiguration{}, Handle: readConfiguration},
		{Method: "GET", Path: one + "/config-revisions", Tag: tag, Summary: "List changes of an agent's configuration", Who: Board, Query: byName(), Out: []company.Revision{}, Handle: listRevisions},
		{Method: "GET", Path: one + "/config-revisions/{revisionId}", Tag: tag, Summary: "Read one change of an agent's configuration", Who: Board, Query: byName(), Out: company.Revision{}, Handle: readRevision},
		{Method: "POST", Path: one + "/config-revisions/{revisionId}/rollback", Tag: tag, Summary: "Give an agent the configuration that it had after a change", Who: Board, Query: byName(), Out: agentRow{}, Handle: rollbackAgent},
	}
}

// agentsByAge returns a company's agents, oldest first.
func agentsByAge(tx *ledger.Tx, of string, terminated bool) []company.Agent {
	list := company.AgentsOf(tx, of, terminated)
	slices.SortStableFunc(list, func(a, b company.Agent) int { return cmp.Compare(a.CreatedAt, b.CreatedAt) })
	return list
}

func listAgents(rc *Request) (Response, error) {
	terminated, err := rc.QueryBool("includeTerminated")
	if err != nil {
		return Response{}, err
	}
	out := []agentRow{}
	err = inCompany(rc, func(tx *ledger.Tx, row company.Company) error {
		for _, a := range agentsByAge(tx, row.ID, terminated) {
			out = append(out, showAgent(tx, a, rc.Now()))
		}
		return nil
	})
	return OK(out), err
}

func listConfigurations(rc *Request) (Response, error) {
	out := []agentConfiguration{}
	err := inCompany(rc, func(tx *ledger.Tx, row company.Company) error {
		for _, a := range agentsByAge(tx, row.ID, false) {
			out = append(out, configureAgent(a))
		}
		return nil
	})
	return OK(out), err
}

func readMe(rc *Request) (r Response, err error) {
	err = rc.View(func(tx *ledger.Tx) error {
		a, ok := company.AgentOf(tx, rc.Company, rc.Actor.ID)
		if !ok {
			return NotFound("Agent not found")
		}
		r = OK(detailAgent(tx, a, rc.Now()))
		return nil
	})
	return r, err
}

func readAgent(rc *Request) (Response, error) {
	return showing(rc, func(tx *ledger.Tx, a company.Agent) any { return detailAgent(tx, a, rc.Now()) })
}

func readConfiguration(rc *Request) (Response, error) {
	return showing(rc, func(_ *ledger.Tx, a company.Agent) any { return configureAgent(a) })
}

func listRevisions(rc *Request) (Response, error) {
	return showing(rc, func(tx *ledger.Tx, a company.Agent) any { return company.RevisionsOf(tx, a.Company, a.ID) })
}

func readRevision(rc *Request) (r Response, err error) {
	err = rc.View(func(tx *ledger.Tx) error {
		a, err := agentIn(tx, rc)
		if err != nil {
			return err
		}
		for _, v := range company.RevisionsOf(tx, a.Company, a.ID) {
			if v.ID == rc.Path("revisionId") {
				r = OK(v)
				return nil
			}
		}
		return NotFound("Revision not found")
	})
	return r, err
}

func rollbackAgent(rc *Request) (Response, error) {
	a, err := findAgent(rc)
	if err != nil {
		return Response{}, err
	}
	return doAgent(rc, company.KindAgentRollback, a.Company, company.RollbackAgent{Agent: a.ID, Revision: strings.ToLower(rc.Path("revisionId"))})
}

// doAgent submits a command about an agent and shows its row.
func doAgent(rc *Request, kind, of string, payload any) (r Response, err error) {
	ref, err := Do[company.AgentRef](rc, kind, of, payload)
	if err != nil {
		return r, err
	}
	err = rc.View(func(tx *ledger.Tx) error {
		a, ok := company.AgentOf(tx, of, ref.ID)
		if !ok {
			return NotFound("Agent not found")
		}
		if kind == company.KindAgentPermissions {
			r = OK(detailAgent(tx, a, rc.Now()))
		} else {
			r = OK(showAgent(tx, a, rc.Now()))
		}
		return nil
	})
	return r, err
}

func createAgent(rc *Request) (Response, error) {
	in, err := Body[newAgent](rc)
	if err != nil {
		return Response{}, err
	}
	if !IsUUID(companyID(rc)) {
		return Response{}, NotFound("Company not found")
	}
	p, err := in.command()
	if err != nil {
		return Response{}, err
	}
	return doAgent(rc, company.KindAgentCreate, companyID(rc), p)
}

// command is the body as a command that makes a new agent. What the body's type can
// not say of it is refused.
func (in newAgent) command() (p company.SaveAgent, err error) {
	if err := checkConfigs(in.AdapterType, in.AdapterConfig.Or(nil), in.RuntimeConfig.Or(nil)); err != nil {
		return p, err
	}
	p = company.SaveAgent{ID: NewID(), Name: &in.Name, Role: given[string](in.Role), Title: textOf(in.Title), Icon: textOf(in.Icon), ReportsTo: idPointer(in.ReportsTo),
		Capabilities: textOf(in.Capabilities), AdapterType: given[string](in.AdapterType), AdapterConfig: in.AdapterConfig.Or(nil), RuntimeConfig: in.RuntimeConfig.Or(nil),
		DefaultEnvironment: idPointer(in.DefaultEnvironment), Metadata: in.Metadata.Or(nil), ContextMode: given[string](in.ContextMode)}
	p.Skills = company.SkillKeysIn(in.DesiredSkills)
	if in.Instructions != nil {
		files, err := in.Instructions.texts()
		if err != nil {
			return p, err
		}
		p.Instructions = company.InstructionsIn(in.Instructions.Entry, files)
	}
	if in.BudgetMonthlyCents > 0 {
		p.Budget = centsOf(&in.BudgetMonthlyCents)
	}
	if in.Permissions != nil {
		p.Permissions = &company.Grant{CreateAgents: in.Permissions.CreateAgents, CreateSkills: in.Permissions.CreateSkills, AssignTasks: in.Permissions.AssignTasks}
	}
	return p, nil
}

func updateAgent(rc *Request) (Response, error) {
	in, err := Body[patchAgent](rc)
	if err != nil {
		return Response{}, err
	}
	a, err := findAgent(rc)
	if err != nil {
		return Response{}, err
	}
	if err := in.check(a); err != nil {
		return Response{}, err
	}
	switch {
	case in.Permissions.Set:
		return Response{}, Unprocessable("Permissions are changed by PATCH /api/agents/"+a.ID+"/permissions", nil)
	case in.DesiredSkills.Set:
		return Response{}, Unprocessable("An agent's skills are changed by POST /api/agents/"+a.ID+"/skills/sync", nil)
	case in.Instructions.Set:
		return Response{}, Unprocessable("An agent's instructions are changed by PUT /api/agents/"+a.ID+"/instructions-bundle/file, a file at a time", nil)
	}
	if kind, err := in.statusCommand(rc, a); err != nil {
		return Response{}, err
	} else if kind != "" {
		r, err := doAgent(rc, kind, a.Company, company.ChangeAgent{Agent: a.ID})
		if err != nil || reflect.DeepEqual(in, patchAgent{Status: in.Status}) {
			return r, err // nothing else was asked for
		}
	}
	return doAgent(rc, company.KindAgentUpdate, a.Company, company.SaveAgent{ID: a.ID, Name: in.Name, Role: given[string](in.Role), Title: textOf(in.Title), Icon: textOf(in.Icon),
		ReportsTo: idPointer(in.ReportsTo), Capabilities: textOf(in.Capabilities), AdapterType: given[string](in.AdapterType), AdapterConfig: rawOf(in.AdapterConfig),
		ReplaceAdapterConfig: in.ReplaceConfig, RuntimeConfig: rawOf(in.RuntimeConfig), DefaultEnvironment: idPointer(in.DefaultEnvironment),
		Budget: centsOf(in.BudgetMonthlyCents), Metadata: rawOf(in.Metadata), ContextMode: given[string](in.ContextMode)})
}

// check refuses what the body's type can not say of the agent as it is: what an
// adapter can not decode, also of what was there for another one.
func (in patchAgent) check(a company.Agent) error {
	kind, config := cmp.Or(in.AdapterType, a.AdapterType), in.AdapterConfig.Or(nil)
	if kind != a.AdapterType && !in.ReplaceConfig {
		var members, given map[string]json.RawMessage
		_ = json.Unmarshal(conceal.RedactConfig(a.AdapterConfig), &members)
		_ = json.Unmarshal(config, &given) // absent
		if members == nil {
			members = map[string]json.RawMessage{}
		}
		maps.Copy(members, given)
		config, _ = json.Marshal(members) // what was decoded encodes
	}
	return checkConfigs(kind, config, in.RuntimeConfig.Or(nil))
}

// statusCommand returns the kind of command that gives an agent the status that
// the body asks for, "" for none.
func (in patchAgent) statusCommand(rc *Request, a company.Agent) (kind string, err error) {
	want, have := company.AgentStatus(in.Status), a.Status
	if want == "" || want == have {
		return "", nil // such as a row that is sent back
	}
	if rc.IsAgent() {
		return "", Forbidden("Board access required")
	}
	switch want {
	case company.AgentPaused:
		return company.KindAgentPause, nil
	case company.AgentTerminated:
		return company.KindAgentTerminate, nil
	case company.AgentIdle, company.AgentActive:
		if have == company.AgentIdle || have == company.AgentActive || have == company.AgentRunning {
			return "", nil // it may work, which is all that can be asked for
		}
		return company.KindAgentResume, nil
	}
	return "", Unprocessable("An agent's status can be set to paused, idle or terminated; "+in.Status+" follows from its runs, or from its hire", nil)
}

func changeAgent(rc *Request, kind string) (Response, error) {
	a, err := findAgent(rc)
	if err != nil {
		return Response{}, err
	}
	return doAgent(rc, kind, a.Company, company.ChangeAgent{Agent: a.ID})
}

func deleteAgent(rc *Request) (Response, error) {
	a, err := findAgent(rc)
	if err != nil {
		return Response{}, err
	}
	_, err = rc.Submit(company.KindAgentDelete, a.Company, company.ChangeAgent{Agent: a.ID})
	return OK(okay{true}), err
}

func permitAgent(rc *Request) (Response, error) {
	in, err := Body[agentPermissions](rc)
	if err != nil {
		return Response{}, err
	}
	a, err := findAgent(rc)
	if err != nil {
		return Response{}, err
	}
	return doAgent(rc, company.KindAgentPermissions, a.Company, company.GrantAgent{Agent: a.ID,
		Grant: company.Grant{CreateAgents: &in.CreateAgents, AssignTasks: &in.AssignTasks, CreateSkills: in.CreateSkills}})
}
