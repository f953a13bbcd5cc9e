package agents

import (
	"fmt"
	"strings"

	"github.com/selvage-mesh/selvage/adapter"
	"github.com/selvage-mesh/selvage/api"
	"github.com/selvage-mesh/selvage/api/skills"
	"github.com/selvage-mesh/selvage/company/entity"
)

const (
	markdown = "text/markdown; charset=utf-8"
)

// TextRoutes are text pages for agents: the bundled skills, and how to configure agents.
func TextRoutes() []api.Route {
	return []api.Route{
		{Method: "GET", Path: "/api/invites/{token}/skills/index", Tag: "members",
			Summary: "List the skills for somebody who joins", Who: api.Public, Out: skillIndex{}, NoTool: true,
			Handle: api.Invited(listBundled)},
		{Method: "GET", Path: "/api/invites/{token}/skills/{skillName}", Tag: "members", Summary: "Read a skill, as Markdown",
			Media: []string{"text/markdown"}, Who: api.Public, NoTool: true, Handle: api.Invited(readBundled)},
		{Method: "GET", Path: "/api/skills/index", Tag: "skills", Summary: "List the skills that come with the program",
			Out: skillIndex{}, Handle: listBundled},
		{Method: "GET", Path: "/api/skills/available", Tag: "skills",
			Summary: "List the skills that come with the program, with what they are for", Out: availableSkills{},
			Handle: listAvailable},
		{Method: "GET", Path: "/api/skills/{skillName}", Tag: "skills",
			Summary: "Read a skill that comes with the program, as Markdown", Media: []string{"text/markdown"},
			Handle: readBundled},
		{Method: "GET", Path: "/api/llms/agent-configuration.txt", Tag: "llms",
			Summary: "Read which adapters there are and how an agent is configured", Media: []string{"text/plain"},
			Handle: configurationIndex},
		{Method: "GET", Path: "/api/llms/agent-configuration/{page}", Tag: "llms",
			Summary: "Read which fields an adapter has; the page is the adapter's type with .txt", Media: []string{"text/plain"},
			Handle: configurationPage},
		{Method: "GET", Path: "/api/llms/agent-icons.txt", Tag: "llms", Summary: "Read which icons agents may have",
			Media: []string{"text/plain"}, Handle: iconsPage},
	}
}

type skillIndex struct {
	Skills []skillPath `json:"skills"`
}

type skillPath struct {
	Name string `json:"name"`
	Path string `json:"path"`
}

type availableSkills struct {
	Skills []availableSkill `json:"skills"`
}

type availableSkill struct {
	Name        string `json:"name"`
	Description string `json:"description"`
	Managed     bool   `json:"isPaperclipManaged"`
}

func listBundled(*api.Request) (api.Response, error) {
	out := skillIndex{Skills: []skillPath{}}
	for _, s := range skills.Bundled() {
		out.Skills = append(out.Skills, skillPath{s.Name, "/api/skills/" + s.Name})
	}
	return api.OK(out), nil
}

func listAvailable(*api.Request) (api.Response, error) {
	out := availableSkills{Skills: []availableSkill{}}
	for _, s := range skills.Bundled() {
		out.Skills = append(out.Skills, availableSkill{s.Name, s.Description, true})
	}
	return api.OK(out), nil
}

func readBundled(rc *api.Request) (api.Response, error) {
	s, ok := skills.Find(rc.Path("skillName"))
	if !ok {
		return api.Response{}, api.NotFound("Skill not found")
	}
	return api.Raw(markdown, []byte(s.Markdown)), nil
}

// adapterPages describe the adapterConfig of each adapter type.
var adapterPages = map[string]string{
	"process": `# Configuration of a process agent

Adapter: process. Each run starts a command on one node of the mesh and waits for it to end.

adapterConfig:
- command (string, needed): the program, by path or by name
- args (list of strings): its arguments
- cwd (string): an absolute folder to work in; without it the run gets one of its own
- env (object): variables; a value is a string, {"type": "plain", "value": "…"}, or
  {"type": "secret_ref", "secretId": "…"}
- timeoutSec (number): after so many seconds the run is ended and counts as timed out; 0 or nothing for no limit
- graceSec (number): how long it may tidy up after SIGTERM before SIGKILL; 15 unless given
- limits (object): memoryMb (512 unless given) and processes (256 unless given) of all its processes together; fileMb
  (256 unless given), openFiles and cpuSec of each; 0 for none
- landlock (boolean): where the kernel can, the run writes below its working directory, its agent's folder, its
  scratch directory, /tmp and /var/tmp only; false opens the rest. Files of the node itself stay closed either way
- writable, hidden (lists of absolute paths): folders that it may write besides, and that it may not read

What a node can not hold of this is said in the run's log. The command finds PAPERCLIP_API_URL, PAPERCLIP_API_KEY (for
this run only), PAPERCLIP_COMPANY_ID, PAPERCLIP_AGENT_ID and PAPERCLIP_RUN_ID in its environment, and
PAPERCLIP_TASK_ID with the reason in PAPERCLIP_WAKE_REASON when an issue woke it. Exit status 0 is success, anything
else a failure. It reports costs itself: POST /api/companies/:id/cost-events.

Example:
{ "name": "Nightly", "role": "devops", "adapterType": "process",
  "adapterConfig": { "command": "/usr/local/bin/nightly", "args": ["--all"], "timeoutSec": 1800 } }
`,
	"container": `# Configuration of a container agent

Adapter: container. Each run is a container of podman or docker on one node of the mesh that has one of them. It has
no capabilities and, unless it asks for one, no network: the API and the model gateway are a unix socket,
SELVAGE_API_SOCKET, at which every request is the run's own.

adapterConfig:
- image (string, needed), command (string: the program in it), args (list of strings), env (object): as for a process;
  values have one line
- cwd (string): the folder of the node that is /work; the agent's own folder is /home/agent, the run's scratch
  directory /scratch
- mounts (list of {source, target, readOnly}): further folders; none of the node's own
- limits (object): memoryMb (512 unless given), processes (512 unless given), cpus, openFiles; 0 for none
- network (string): none, host or bridge
- user (string): uid or uid:gid; readOnly (boolean): whether the image's files are only read, true unless given; pull
  (string): missing, never or always
- timeoutSec, graceSec (number): as for a process

Example:
{ "name": "Builder", "role": "engineer", "adapterType": "container",
  "adapterConfig": { "image": "docker.io/library/alpine:3", "command": "sh", "args": ["-c", "make"],
    "cwd": "/srv/project", "limits": { "memoryMb": 1024 } } }
`,
	"wasm": `# Configuration of a wasm agent

Adapter: wasm. Each run is a WebAssembly program (WASI preview 1) in the sandbox of one node of the mesh: it sees
nothing of the machine and acts through functions of its host alone, with the rights of the agent. docs/sandbox-abi.md
has what it may ask for.

adapterConfig:
- module (string): an absolute path on the node, attachment:ID or asset:ID; without one it is the agent that comes
  with the program, which works on issues with the models of the mesh (env AGENT_MODEL names one, AGENT_PROMPT adds to
  its instructions)
- sha256 (string): of the module; another is not run
- args (list of strings) and env (object): as for a process
- fuel (number): about one unit an instruction; 10000000000 unless given
- memoryMb (number): 16 unless given
- timeoutSec (number): 900 unless given; 0 for no limit
- hostCalls (number): how often it may ask its host; 10000 unless given
- grants (list of strings): what it may ask for, such as ["issue.*", "log"]; all unless given
- fetchHosts (list of strings): hosts that http.fetch may reach, such as ["example.com", "*.example.org"]; none unless
  given

Example:
{ "name": "Sorter", "role": "pm", "adapterType": "wasm",
  "adapterConfig": { "module": "/srv/agents/sorter.wasm", "grants": ["issue.*", "comment.*", "run.context", "log"] } }
`,
}

func configurationIndex(*api.Request) (api.Response, error) {
	var b strings.Builder
	b.WriteString("# How agents are configured\n\nAdapters that run agents on this mesh:\n")
	for _, a := range adapters {
		fmt.Fprintf(&b, "- %s: /llms/agent-configuration/%s.txt\n", a.Type, a.Type)
	}
	b.WriteString(`
Paths are below /api, such as GET /api/llms/agent-configuration/process.txt.

Of every agent, whatever its adapter:
- name (string, needed), title, icon (see /llms/agent-icons.txt), capabilities (string: what others may ask of it)
- role: ` + strings.Join(entity.Roles[:len(entity.Roles)-1], ", ") + " or " + entity.Roles[len(entity.Roles)-1] + `
- reportsTo (agent ID): its manager; the chain must end at the top
- adapterType and adapterConfig: how it runs, by the page of the adapter
- instructionsBundle: { files: { "AGENTS.md": text, ... }, entryFile } that it begins with, and desiredSkills: keys of
  skills
- runtimeConfig.heartbeat: { enabled (timer on), intervalSec (30 at least), wakeOnDemand, maxConcurrentRuns }
- budgetMonthlyCents (whole number): 0 sets none
- permissions: { canCreateAgents, canCreateSkills (boolean) }; the board sets them

Create one with POST /api/companies/:companyId/agent-hires; where the company asks for it, the board approves first.
See first who is there: GET /api/companies/:companyId/agents, or agent-configurations for the board. Secrets are shown
as ***REDACTED*** and kept when sent back so.
`)
	return api.Raw(api.PlainText, []byte(b.String())), nil
}

func configurationPage(rc *api.Request) (api.Response, error) {
	kind, ok := strings.CutSuffix(rc.Path("page"), ".txt")
	k, known := adapter.Find(kind)
	if !ok || !known {
		return api.Response{}, api.NotFound("Unknown adapter type: " + api.Cut(kind, 100))
	}
	page, ok := adapterPages[kind]
	if !ok {
		page = pageOf(k)
	}
	return api.Raw(api.PlainText, []byte(page)), nil
}

// pageOf is the default page of an adapter: a list of its fields.
func pageOf(k adapter.Kind) string {
	var b strings.Builder
	fmt.Fprintf(&b, "# Configuration of a %s agent\n\nAdapter: %s (%s). %s\n\nadapterConfig:\n", k.Type, k.Type,
		k.Name, k.Note)
	for _, f := range k.Fields {
		need := ""
		if f.Required {
			need = ", needed"
		}
		if f.Default != nil {
			need += fmt.Sprintf(", %v unless given", f.Default)
		}
		fmt.Fprintf(&b, "- %s (%s%s): %s", f.Key, f.Type, need, f.Label)
		if f.Hint != "" {
			b.WriteString("; " + f.Hint)
		}
		for i, o := range f.Options {
			b.WriteString([]string{"; one of ", ", "}[min(i, 1)] + o.Value)
		}
		b.WriteString("\n")
	}
	if k.Gateway {
		b.WriteString("\nIts model calls go through the gateway of its node: they are paid from the agent's budget before " +
			"they leave, and the agent holds no key.\n")
	}
	return b.String()
}

// icons are the names of the icons that the board can draw.
var icons = strings.Fields(`bot cpu brain zap rocket code terminal shield eye search wrench hammer lightbulb sparkles
	star heart flame bug cog database globe lock mail message-square file-code git-branch package puzzle target wand atom
	circuit-board radar swords telescope microscope crown gem hexagon pentagon fingerprint`)

func iconsPage(*api.Request) (api.Response, error) {
	return api.Raw(api.PlainText, []byte("# Icons of agents\n\n"+
		"The field icon of an agent is one of these names:\n- "+strings.Join(icons, "\n- ")+
		"\n\nExample:\n{ \"name\": \"Lookout\", \"role\": \"researcher\", \"icon\": \"telescope\" }\n")), nil
}
