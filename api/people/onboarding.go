package people

import (
	"fmt"
	"strings"

	"github.com/selvage-mesh/selvage/api"
	"github.com/selvage-mesh/selvage/company/core"
	"github.com/selvage-mesh/selvage/company/entity"
	"github.com/selvage-mesh/selvage/company/people"
	"github.com/selvage-mesh/selvage/ledger"
)

// onboardSkill is the skill that a new agent reads first.
const onboardSkill = "paperclip"

// An onboarding tells a program how to join, with this node's addresses.
type onboarding struct {
	Instructions string        `json:"instructions"`
	Message      core.NullText `json:"inviteMessage"`
	Recommended  core.NullText `json:"recommendedAdapterType"`
	Fields       joinFields    `json:"requiredFields"`
	Registration endpoint      `json:"registrationEndpoint"`
	Claim        claimEndpoint `json:"claimEndpointTemplate"`
	Connectivity connectivity  `json:"connectivity"`
	Text         textLink      `json:"textInstructions"`
	Skill        skillLink     `json:"skill"`
}

type joinFields struct {
	Type         string `json:"requestType"`
	AgentName    string `json:"agentName"`
	AdapterType  string `json:"adapterType"`
	Capabilities string `json:"capabilities"`
	Defaults     string `json:"agentDefaultsPayload"`
}

type endpoint struct {
	Method string `json:"method"`
	Path   string `json:"path"`
	URL    string `json:"url"`
}

type claimEndpoint struct {
	Method string `json:"method"`
	Path   string `json:"path"`
	Body   struct {
		Secret string `json:"claimSecret"`
	} `json:"body"`
}

type connectivity struct {
	Mode        string       `json:"deploymentMode"`
	Exposure    string       `json:"deploymentExposure"`
	Bind        string       `json:"bindHost"`
	Hosts       []string     `json:"allowedHostnames"`
	Candidates  []string     `json:"connectionCandidates"`
	Diagnostics []diagnostic `json:"diagnostics"`
	Guidance    string       `json:"guidance"`
}

type diagnostic struct {
	Code    string `json:"code"`
	Level   string `json:"level"`
	Message string `json:"message"`
	Hint    string `json:"hint"`
}

type textLink struct {
	Path        string `json:"path"`
	URL         string `json:"url"`
	ContentType string `json:"contentType"`
}

type skillLink struct {
	Name        string `json:"name"`
	Path        string `json:"path"`
	URL         string `json:"url"`
	InstallPath string `json:"installPath"`
}

// onboardingOf returns how to use the invite whose token the path has.
func onboardingOf(rc *api.Request, i people.Invite) *onboarding {
	base, path := rc.Base(), "/api/invites/"+rc.Path("token")
	o := &onboarding{Message: i.Message,
		Instructions: "Ask to join with requestType agent and your agentName, keep the claim secret that the answer " +
			"shows, wait until a person of the company lets you in, then trade the secret for your API key. The secret works " +
			"once.",
		Fields: joinFields{Type: "agent", AgentName: "The name that you will be shown by",
			AdapterType:  "How runs of yours are started: process, http, or another type that this mesh knows",
			Capabilities: "What you can do, in a few sentences; may be left out",
			Defaults:     "The adapter's configuration: a process has command and args, an http agent has url"},
		Registration: endpoint{"POST", path + "/accept", base + path + "/accept"},
		Claim:        claimEndpoint{Method: "POST", Path: claimPath("{requestId}")},
		Connectivity: connectivity{Mode: rc.Server.Mode(), Exposure: "private", Bind: hostOf(rc.HTTP.Host),
			Hosts: rc.Server.Cfg.Hosts, Candidates: []string{base}, Diagnostics: []diagnostic{},
			Guidance: "Any node of the mesh takes these requests; use one that you can reach."},
		Text: textLink{path + "/onboarding.txt", base + path + "/onboarding.txt", "text/plain"},
		Skill: skillLink{onboardSkill, path + "/skills/" + onboardSkill, base + path + "/skills/" + onboardSkill,
			"where your runtime looks for skills"}}
	o.Claim.Body.Secret = "the claim secret that the answer to your request showed"
	if o.Connectivity.Hosts == nil {
		o.Connectivity.Hosts = []string{}
	}
	if isLoopback(o.Connectivity.Bind) {
		o.Connectivity.Diagnostics = append(o.Connectivity.Diagnostics, diagnostic{"onboarding_api_loopback", "warn",
			"The address of this node is a loopback one: only programs of the same machine reach it.",
			"Use the address of a node that listens on the network."})
	}
	return o
}

// hostOf returns the host of a Host header, without the port.
func hostOf(host string) string {
	if i := strings.LastIndexByte(host, ':'); i >= 0 && !strings.HasSuffix(host, "]") {
		host = host[:i]
	}
	return strings.Trim(host, "[]")
}

func isLoopback(host string) bool {
	return host == "localhost" || host == "::1" || strings.HasPrefix(host, "127.")
}

// inviteOnboarding says how to join a company with an invite.
type inviteOnboarding struct {
	Invite     people.JoinType `json:"allowedJoinTypes"`
	ExpiresAt  core.Time       `json:"expiresAt"`
	Company    string          `json:"companyName"`
	Onboarding *onboarding     `json:"onboarding"`
}

func readOnboarding(rc *api.Request) (r api.Response, err error) {
	err = rc.ViewBySecret(func(tx *ledger.Tx) error {
		i, row, err := api.InviteIn(tx, rc)
		if err != nil {
			return err
		}
		r = api.OK(inviteOnboarding{i.Joins, i.ExpiresAt, row.Name, onboardingOf(rc, i)})
		return nil
	})
	return r, err
}

func readOnboardingText(rc *api.Request) (r api.Response, err error) {
	err = rc.ViewBySecret(func(tx *ledger.Tx) error {
		i, row, err := api.InviteIn(tx, rc)
		if err != nil {
			return err
		}
		r = api.Raw(api.PlainText, []byte(onboardingText(rc, i, row)))
		return nil
	})
	return r, err
}

// onboardingText is the onboarding as text, with commands to copy.
func onboardingText(rc *api.Request, i people.Invite, row entity.Company) string {
	o := onboardingOf(rc, i)
	var b strings.Builder
	fmt.Fprintf(&b, `# How to join %s

You hold an invite to a company of agents. This page is for people and for programs.

- company: %s
- who may join: %s
- the invite ends: %s
`, api.OneLine(row.Name), row.ID, i.Joins, i.ExpiresAt)
	if i.Message != "" {
		fmt.Fprintf(&b, "\n## A word from the one who invites you\n\n%s\n", i.Message)
	}
	if i.Joins != people.JoinAgent {
		fmt.Fprintf(&b, "\n## A person\n\nSign in to this server and open %s/invite/%s. You come in as %s.\n", rc.Base(),
			rc.Path("token"), i.Role)
	}
	if i.Joins != people.JoinHuman {
		fmt.Fprintf(&b, `
## An agent

1. Ask to join:

   POST %s
   Content-Type: application/json

   {"requestType": "agent", "agentName": "Your name", "adapterType": "process",
    "capabilities": "What you can do", "agentDefaultsPayload": {"command": "/path/to/program"}}

   The answer (202) has the id of your request and a claimSecret. Keep the
   secret to yourself; it is shown this once.

2. Wait. A person of the company decides. Until then step 3 answers 409.

3. Fetch your key, once, within seven days:

   POST %s%s
   Content-Type: application/json

   {"claimSecret": "pcp_claim_..."}

   The answer (201) has token, keyId and agentId. Store the token where only
   you can read it.

4. Begin. Send the token with each request:

   GET %s/api/agents/me
   Authorization: Bearer pcp_...

   Read the skill %q for how to find work and report it:
   %s

adapterType says how runs of yours are started: process starts a command,
http calls a URL. agentDefaultsPayload is that adapter's configuration.
`, o.Registration.URL, rc.Base(), claimPath("{id}"), rc.Base(), onboardSkill, o.Skill.URL)
	}
	for _, d := range o.Connectivity.Diagnostics {
		fmt.Fprintf(&b, "\nNote: %s %s\n", d.Message, d.Hint)
	}
	return b.String()
}
