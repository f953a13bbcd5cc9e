// Package agents is the routes about agents: their configuration, adapters,
// environments, skills, tools, memory and keys, and the org chart.
package agents

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/selvage-mesh/selvage/api"
	"github.com/selvage-mesh/selvage/company"
	"github.com/selvage-mesh/selvage/company/conceal"
	"github.com/selvage-mesh/selvage/company/core"
	"github.com/selvage-mesh/selvage/company/entity"
	"github.com/selvage-mesh/selvage/company/money"
	"github.com/selvage-mesh/selvage/company/people"
	"github.com/selvage-mesh/selvage/company/skill"
	"github.com/selvage-mesh/selvage/ledger"
)

// newAgent is the body that creates an agent.
type newAgent struct {
	Name               string                   `json:"name" minLength:"1" maxLength:"500" maxBytes:"500"`
	Role               string                   `json:"role,omitempty" enum:"ceo,cto,cmo,cfo,security,engineer,designer,pm,qa,devops,researcher,general"`
	Title              api.Opt[string]          `json:"title" maxLength:"500" maxBytes:"500"`
	Icon               api.Opt[string]          `json:"icon" maxLength:"100"`
	ReportsTo          api.Opt[string]          `json:"reportsTo" format:"uuid"`
	Capabilities       api.Opt[string]          `json:"capabilities" maxLength:"50000" maxBytes:"50000"`
	AdapterType        string                   `json:"adapterType,omitempty" minLength:"1" maxLength:"100"`
	AdapterConfig      api.Opt[json.RawMessage] `json:"adapterConfig" maxBytes:"65536"`
	RuntimeConfig      api.Opt[json.RawMessage] `json:"runtimeConfig" maxBytes:"65536"`
	DefaultEnvironment api.Opt[string]          `json:"defaultEnvironmentId" format:"uuid"`
	BudgetMonthlyCents int64                    `json:"budgetMonthlyCents,omitempty" minimum:"0" maximum:"1000000000000"`
	Permissions        *agentGrant              `json:"permissions,omitempty"`
	Metadata           api.Opt[json.RawMessage] `json:"metadata" maxBytes:"65536"`
	ContextMode        string                   `json:"contextMode,omitempty" enum:"thin,fat"`
	DesiredSkills      []json.RawMessage        `json:"desiredSkills,omitempty" maxItems:"200" types:"string,object" maxBytes:"8192"`
	Instructions       *newInstructions         `json:"instructionsBundle,omitempty"`
}

// newInstructions are the instruction files of a new agent.
type newInstructions struct {
	Entry string          `json:"entryFile,omitempty" minLength:"1" maxLength:"400"`
	Files json.RawMessage `json:"files" types:"object" maxBytes:"196608"` // text by path
}

// texts returns the files by path.
func (n newInstructions) texts() (files map[string]string, err error) {
	if json.Unmarshal(n.Files, &files) != nil || files == nil {
		return nil, api.ValidationError(api.Issue{Code: "invalid_type", Expected: "record", Path: []any{"instructionsBundle",
			"files"}, Message: "Invalid input: expected the text of each file by its path"})
	}
	for _, text := range files {
		if len(text) > skill.MaxInstructionFile {
			return nil, api.ValidationError(api.Issue{Code: "too_big", Path: []any{"instructionsBundle", "files"},
				Maximum: new(float64(skill.MaxInstructionFile)), Inclusive: new(true),
				Message: fmt.Sprintf("Too big: expected each file to have <=%d bytes", skill.MaxInstructionFile)})
		}
	}
	return files, nil
}

// patchAgent is the body that changes an agent.
type patchAgent struct {
	Name               *string                  `json:"name,omitempty" minLength:"1" maxLength:"500" maxBytes:"500" nullable:"false"`
	Role               string                   `json:"role,omitempty" enum:"ceo,cto,cmo,cfo,security,engineer,designer,pm,qa,devops,researcher,general"`
	Title              api.Opt[string]          `json:"title" maxLength:"500" maxBytes:"500"`
	Icon               api.Opt[string]          `json:"icon" maxLength:"100"`
	ReportsTo          api.Opt[string]          `json:"reportsTo" format:"uuid"`
	Capabilities       api.Opt[string]          `json:"capabilities" maxLength:"50000" maxBytes:"50000"`
	AdapterType        string                   `json:"adapterType,omitempty" minLength:"1" maxLength:"100"`
	AdapterConfig      api.Opt[json.RawMessage] `json:"adapterConfig" maxBytes:"65536" nullable:"false"`
	ReplaceConfig      bool                     `json:"replaceAdapterConfig,omitempty"`
	RuntimeConfig      api.Opt[json.RawMessage] `json:"runtimeConfig" maxBytes:"65536" nullable:"false"`
	DefaultEnvironment api.Opt[string]          `json:"defaultEnvironmentId" format:"uuid"`
	BudgetMonthlyCents *int64                   `json:"budgetMonthlyCents,omitempty" minimum:"0" maximum:"1000000000000" nullable:"false"`
	Metadata           api.Opt[json.RawMessage] `json:"metadata" maxBytes:"65536"`
	ContextMode        string                   `json:"contextMode,omitempty" enum:"thin,fat"`
	// Status pauses, resumes or terminates the agent, as the routes for that do.
	Status string `json:"status,omitempty" enum:"active,paused,idle,running,error,pending_approval,terminated"`
	// These have their own routes; here they are refused with a 422 that names the route.
	Permissions   api.Opt[json.RawMessage] `json:"permissions"`
	DesiredSkills api.Opt[json.RawMessage] `json:"desiredSkills" types:"array" nullable:"false"`
	Instructions  api.Opt[json.RawMessage] `json:"instructionsBundle" nullable:"false"`
}

// agentGrant is a change of one permission of an agent.
type agentGrant struct {
	CreateAgents *bool `json:"canCreateAgents,omitempty" nullable:"false"`
	CreateSkills *bool `json:"canCreateSkills,omitempty" nullable:"false"`
	AssignTasks  *bool `json:"canAssignTasks,omitempty" nullable:"false"`
}

// agentPermissions is the body that changes an agent's permissions.
type agentPermissions struct {
	CreateAgents bool  `json:"canCreateAgents"`
	AssignTasks  bool  `json:"canAssignTasks"`
	CreateSkills *bool `json:"canCreateSkills,omitempty" nullable:"false"`
}

// An agentRow is an agent as answers show it: its row without secrets, and figures from
// other rows.
type agentRow struct {
	entity.Agent
	AdapterConfig json.RawMessage  `json:"adapterConfig"`
	RuntimeConfig json.RawMessage  `json:"runtimeConfig"`
	BudgetMonthly core.Money       `json:"budgetMonthlyCents"`
	SpentMonthly  core.Money       `json:"spentMonthlyCents"`
	Held          core.Money       `json:"heldCents"` // reserved for calls in progress
	Metadata      json.RawMessage  `json:"metadata"`
	ContextMode   string           `json:"contextMode" enum:"thin,fat"`
	URLKey        string           `json:"urlKey"`
	OrgHealth     people.OrgHealth `json:"orgChainHealth"`
}

// An agentDetail is the answer of an agent's own route.
type agentDetail struct {
	agentRow
	ChainOfCommand []people.Superior `json:"chainOfCommand"`
	Access         people.Access     `json:"access"`
}

// An agentConfiguration is an agent's adapter and runtime configuration.
type agentConfiguration struct {
	ID            string             `json:"id"`
	Company       ledger.CompanyID   `json:"companyId"`
	Name          string             `json:"name"`
	Role          string             `json:"role"`
	Title         core.NullText      `json:"title"`
	Status        entity.AgentStatus `json:"status"`
	ReportsTo     core.NullText      `json:"reportsTo"`
	AdapterType   string             `json:"adapterType"`
	AdapterConfig json.RawMessage    `json:"adapterConfig"`
	RuntimeConfig json.RawMessage    `json:"runtimeConfig"`
	Permissions   entity.Permissions `json:"permissions"`
	UpdatedAt     core.Time          `json:"updatedAt"`
}

func showAgent(tx *ledger.Tx, a entity.Agent, now time.Time) agentRow {
	limit, spent := money.AgentBudget(tx, a.Company, a.ID, core.TimeOf(now))
	row := agentRow{Agent: a, AdapterConfig: conceal.RedactConfig(a.AdapterConfig),
		RuntimeConfig: conceal.RedactConfig(a.RuntimeConfig),
		BudgetMonthly: limit, SpentMonthly: spent, Held: money.MoneyHeld(tx, a.Company, entity.ScopeAgent, a.ID),
		Metadata: api.RawJSON(nil), ContextMode: a.Mode(), URLKey: a.URLKey(), OrgHealth: people.OrgHealthOf(tx, a)}
	if len(a.Metadata) > 0 {
		row.Metadata = conceal.RedactConfig(a.Metadata)
	}
	// The embedded row would repeat the configurations, so they are cleared.
	row.Agent.AdapterConfig, row.Agent.RuntimeConfig, row.Agent.Metadata = nil, nil, nil
	return row
}

func detailAgent(tx *ledger.Tx, a entity.Agent, now time.Time) agentDetail {
	return agentDetail{showAgent(tx, a, now), people.ChainOfCommand(tx, a), people.AccessOf(a)}
}

func configureAgent(a entity.Agent) agentConfiguration {
	return agentConfiguration{ID: a.ID, Company: a.Company, Name: a.Name, Role: a.Role, Title: a.Title, Status: a.Status,
		ReportsTo: a.ReportsTo, AdapterType: a.AdapterType,
		AdapterConfig: conceal.RedactConfig(a.AdapterConfig), RuntimeConfig: conceal.RedactConfig(a.RuntimeConfig),
		Permissions: a.Permissions, UpdatedAt: a.UpdatedAt}
}

func AgentRoutes() []api.Route {
	const tag, one = "agents", "/api/agents/{id}"
	change := func(verb, kind, summary string) api.Route {
		return api.Route{Method: "POST", Path: one + "/" + verb, Tag: tag, Summary: summary, Who: api.Board,
			Query: api.ByName(), Out: agentRow{},
			Handle: func(rc *api.Request) (api.Response, error) { return changeAgent(rc, kind) }}
	}
	return []api.Route{
		{Method: "GET", Path: "/api/companies/{companyId}/agents", Tag: tag, Summary: "List agents", Out: []agentRow{},
			Handle: listAgents,
			Query:  []api.Param{{Name: "includeTerminated", Type: "boolean", Doc: "also those that were terminated"}}},
		{Method: "POST", Path: "/api/companies/{companyId}/agents", Tag: tag, Summary: "Create an agent", Who: api.Board,
			In: newAgent{}, Out: agentRow{}, Status: 201, Handle: createAgent},
		api.List(api.Route{Path: "/api/companies/{companyId}/agent-configurations", Tag: tag,
			Summary: "List how agents are invoked", Who: api.Board}, configurationsOf),
		api.ShowNow(api.Route{Path: "/api/agents/me", Tag: tag, Summary: "Read the agent that asks", Who: api.Agent},
			callerIn, describeAgent),
		api.ShowNow(api.Route{Path: one, Tag: tag, Summary: "Read an agent by ID or name", Query: api.ByName()}, api.AgentIn,
			describeAgent),
		{Method: "PATCH", Path: one, Tag: tag, Summary: "Change an agent", Query: api.ByName(), In: patchAgent{},
			Out: agentRow{}, Handle: updateAgent},
		api.Tell(api.Route{Path: one, Tag: tag, Summary: "Delete an agent", Who: api.Board, Query: api.ByName()},
			company.KindAgentDelete, agentAt,
			func(_ *api.Request, id string) company.ChangeAgent { return company.ChangeAgent{Agent: id} }),
		change("pause", company.KindAgentPause, "Pause an agent"), change("resume", company.KindAgentResume,
			"Let an agent go on"),
		change("clear-error", company.KindAgentResume, "Let an agent go on after an error"),
		change("terminate", company.KindAgentTerminate, "End an agent for good"),
		{Method: "PATCH", Path: one + "/permissions", Tag: tag, Summary: "Change what an agent may do", Who: api.Board,
			Query: api.ByName(), In: agentPermissions{}, Out: agentDetail{}, Handle: permitAgent},
		api.Show(api.Route{Path: one + "/configuration", Tag: tag, Summary: "Read how an agent is invoked",
			Query: api.ByName()}, api.AgentIn,
			func(_ *ledger.Tx, a entity.Agent) agentConfiguration { return configureAgent(a) }),
		api.Show(api.Route{Path: one + "/config-revisions", Tag: tag, Summary: "List changes of an agent's configuration",
			Who: api.Board, Query: api.ByName()}, api.AgentIn,
			func(tx *ledger.Tx, a entity.Agent) []entity.Revision { return entity.RevisionsOf(tx, a.Company, a.ID) }),
		api.Read(api.Route{Path: one + "/config-revisions/{revisionId}", Tag: tag,
			Summary: "Read one change of an agent's configuration", Who: api.Board, Query: api.ByName()}, readRevision),
		{Method: "POST", Path: one + "/config-revisions/{revisionId}/rollback", Tag: tag,
			Summary: "Give an agent the configuration that it had after a change", Who: api.Board, Query: api.ByName(),
			Out: agentRow{}, Handle: rollbackAgent},
	}
}

// agentsByAge returns a company's agents, oldest first.
func agentsByAge(tx *ledger.Tx, of ledger.CompanyID, terminated bool) []entity.Agent {
	list := entity.AgentsOf(tx, of, terminated)
	slices.SortStableFunc(list, func(a, b entity.Agent) int { return cmp.Compare(a.CreatedAt, b.CreatedAt) })
	return list
}

func listAgents(rc *api.Request) (api.Response, error) {
	terminated, err := rc.QueryBool("includeTerminated")
	if err != nil {
		return api.Response{}, err
	}
	out := []agentRow{}
	err = api.InCompany(rc, func(tx *ledger.Tx, row entity.Company) error {
		for _, a := range agentsByAge(tx, row.ID, terminated) {
			out = append(out, showAgent(tx, a, rc.Now()))
		}
		return nil
	})
	return api.OK(out), err
}

func configurationsOf(tx *ledger.Tx, of ledger.CompanyID) []agentConfiguration {
	out := []agentConfiguration{}
	for _, a := range agentsByAge(tx, of, false) {
		out = append(out, configureAgent(a))
	}
	return out
}

// callerIn returns the agent that asks.
func callerIn(tx *ledger.Tx, rc *api.Request) (entity.Agent, error) {
	a, ok := entity.AgentOf(tx, rc.Company, rc.Actor.ID)
	if !ok {
		return a, api.NotFound("Agent not found")
	}
	return a, nil
}

// agentAt is the place of the path's agent.
var agentAt = api.Located(api.AgentIn, func(a entity.Agent) (ledger.CompanyID, string) { return a.Company, a.ID })

func describeAgent(tx *ledger.Tx, a entity.Agent, now core.Time) agentDetail {
	return detailAgent(tx, a, now.Std())
}

func readRevision(tx *ledger.Tx, rc *api.Request) (v entity.Revision, err error) {
	a, err := api.AgentIn(tx, rc)
	if err != nil {
		return v, err
	}
	for _, v := range entity.RevisionsOf(tx, a.Company, a.ID) {
		if v.ID == rc.Path("revisionId") {
			return v, nil
		}
	}
	return v, api.NotFound("Revision not found")
}

func rollbackAgent(rc *api.Request) (api.Response, error) {
	a, err := api.FindAgent(rc)
	if err != nil {
		return api.Response{}, err
	}
	return doAgent(rc, company.KindAgentRollback, a.Company, company.RollbackAgent{Agent: a.ID,
		Revision: strings.ToLower(rc.Path("revisionId"))})
}

// doAgent submits a command about an agent and answers its row.
func doAgent(rc *api.Request, kind string, of ledger.CompanyID, payload any) (r api.Response, err error) {
	ref, err := api.Do[company.AgentRef](rc, kind, of, payload)
	if err != nil {
		return r, err
	}
	err = rc.View(func(tx *ledger.Tx) error {
		a, ok := entity.AgentOf(tx, of, ref.ID)
		if !ok {
			return api.NotFound("Agent not found")
		}
		if kind == company.KindAgentPermissions {
			r = api.OK(detailAgent(tx, a, rc.Now()))
		} else {
			r = api.OK(showAgent(tx, a, rc.Now()))
		}
		return nil
	})
	return r, err
}

func createAgent(rc *api.Request) (api.Response, error) {
	in, err := api.Body[newAgent](rc)
	if err != nil {
		return api.Response{}, err
	}
	if !api.IsUUID(api.CompanyID(rc)) {
		return api.Response{}, api.NotFound("Company not found")
	}
	p, err := in.command()
	if err != nil {
		return api.Response{}, err
	}
	return doAgent(rc, company.KindAgentCreate, api.CompanyID(rc), p)
}

// command returns the command that creates the agent of the body. It refuses what the
// body's type can not express.
func (in newAgent) command() (p entity.SaveAgent, err error) {
	if err := api.CheckConfigs(in.AdapterType, in.AdapterConfig.Or(nil), in.RuntimeConfig.Or(nil)); err != nil {
		return p, err
	}
	p = entity.SaveAgent{ID: api.NewID(), Name: &in.Name, Role: api.Given[string](in.Role), Title: api.TextOf(in.Title),
		Icon: api.TextOf(in.Icon), ReportsTo: api.IdPointer(in.ReportsTo),
		Capabilities: api.TextOf(in.Capabilities), AdapterType: api.Given[string](in.AdapterType),
		AdapterConfig: in.AdapterConfig.Or(nil), RuntimeConfig: in.RuntimeConfig.Or(nil),
		DefaultEnvironment: api.IdPointer(in.DefaultEnvironment), Metadata: in.Metadata.Or(nil),
		ContextMode: api.Given[string](in.ContextMode)}
	p.Skills = entity.SkillKeysIn(in.DesiredSkills)
	if in.Instructions != nil {
		files, err := in.Instructions.texts()
		if err != nil {
			return p, err
		}
		p.Instructions = entity.InstructionsIn(in.Instructions.Entry, files)
	}
	if in.BudgetMonthlyCents > 0 {
		p.Budget = api.CentsOf(&in.BudgetMonthlyCents)
	}
	if in.Permissions != nil {
		p.Permissions = &entity.Grant{CreateAgents: in.Permissions.CreateAgents, CreateSkills: in.Permissions.CreateSkills,
			AssignTasks: in.Permissions.AssignTasks}
	}
	return p, nil
}

func updateAgent(rc *api.Request) (api.Response, error) {
	in, err := api.Body[patchAgent](rc)
	if err != nil {
		return api.Response{}, err
	}
	a, err := api.FindAgent(rc)
	if err != nil {
		return api.Response{}, err
	}
	if err := in.check(a); err != nil {
		return api.Response{}, err
	}
	switch {
	case in.Permissions.Set:
		return api.Response{}, api.Unprocessable("Permissions are changed by PATCH /api/agents/"+a.ID+"/permissions", nil)
	case in.DesiredSkills.Set:
		return api.Response{},
			api.Unprocessable("An agent's skills are changed by POST /api/agents/"+a.ID+"/skills/sync", nil)
	case in.Instructions.Set:
		return api.Response{},
			api.Unprocessable("An agent's instructions are changed by PUT /api/agents/"+a.ID+
				"/instructions-bundle/file, a file at a time", nil)
	}
	if kind, err := in.statusCommand(rc, a); err != nil {
		return api.Response{}, err
	} else if kind != "" {
		r, err := doAgent(rc, kind, a.Company, company.ChangeAgent{Agent: a.ID})
		if err != nil || reflect.DeepEqual(in, patchAgent{Status: in.Status}) {
			return r, err // there is no other change
		}
	}
	return doAgent(rc, company.KindAgentUpdate, a.Company, entity.SaveAgent{ID: a.ID, Name: in.Name,
		Role: api.Given[string](in.Role), Title: api.TextOf(in.Title), Icon: api.TextOf(in.Icon),
		ReportsTo: api.IdPointer(in.ReportsTo), Capabilities: api.TextOf(in.Capabilities),
		AdapterType: api.Given[string](in.AdapterType), AdapterConfig: api.RawOf(in.AdapterConfig),
		ReplaceAdapterConfig: in.ReplaceConfig, RuntimeConfig: api.RawOf(in.RuntimeConfig),
		DefaultEnvironment: api.IdPointer(in.DefaultEnvironment),
		Budget:             api.CentsOf(in.BudgetMonthlyCents), Metadata: api.RawOf(in.Metadata),
		ContextMode: api.Given[string](in.ContextMode)})
}

// check refuses a configuration that the agent's adapter could not decode, including
// members kept from the former adapter.
func (in patchAgent) check(a entity.Agent) error {
	kind, config := cmp.Or(in.AdapterType, a.AdapterType), in.AdapterConfig.Or(nil)
	if kind != a.AdapterType && !in.ReplaceConfig {
		var members, given map[string]json.RawMessage
		_ = json.Unmarshal(conceal.RedactConfig(a.AdapterConfig), &members)
		_ = json.Unmarshal(config, &given) // absent members stay absent
		if members == nil {
			members = map[string]json.RawMessage{}
		}
		maps.Copy(members, given)
		config, _ = json.Marshal(members) // decoded JSON can be encoded
	}
	return api.CheckConfigs(kind, config, in.RuntimeConfig.Or(nil))
}

// statusCommand returns the kind of command that sets the requested status, "" if none
// is needed.
func (in patchAgent) statusCommand(rc *api.Request, a entity.Agent) (kind string, err error) {
	want, have := entity.AgentStatus(in.Status), a.Status
	if want == "" || want == have {
		return "", nil // such as an unchanged row that a client sends back
	}
	if rc.IsAgent() {
		return "", api.Forbidden("Board access required")
	}
	switch want {
	case entity.AgentPaused:
		return company.KindAgentPause, nil
	case entity.AgentTerminated:
		return company.KindAgentTerminate, nil
	case entity.AgentIdle, entity.AgentActive:
		if have == entity.AgentIdle || have == entity.AgentActive || have == entity.AgentRunning {
			return "", nil // it can work already
		}
		return company.KindAgentResume, nil
	}
	return "", api.Unprocessable("An agent's status can be set to paused, idle or terminated; "+in.Status+
		" follows from its runs, or from its hire", nil)
}

func changeAgent(rc *api.Request, kind string) (api.Response, error) {
	a, err := api.FindAgent(rc)
	if err != nil {
		return api.Response{}, err
	}
	return doAgent(rc, kind, a.Company, company.ChangeAgent{Agent: a.ID})
}

func permitAgent(rc *api.Request) (api.Response, error) {
	in, err := api.Body[agentPermissions](rc)
	if err != nil {
		return api.Response{}, err
	}
	a, err := api.FindAgent(rc)
	if err != nil {
		return api.Response{}, err
	}
	return doAgent(rc, company.KindAgentPermissions, a.Company, company.GrantAgent{Agent: a.ID,
		Grant: entity.Grant{CreateAgents: &in.CreateAgents, AssignTasks: &in.AssignTasks, CreateSkills: in.CreateSkills}})
}
