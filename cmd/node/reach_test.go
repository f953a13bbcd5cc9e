package main

import (
	"context"
	"errors"
	"iter"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/selvage-mesh/selvage/api"
	"github.com/selvage-mesh/selvage/api/routes"
	"github.com/selvage-mesh/selvage/ledger"
)

// notForPeople are the operations that the story does not call, and why. "{c}" is a
// company, a leading * any method, a trailing * any rest.
var notForPeople = map[string][]string{
	"an agent asks this under its run": {"GET /api/agents/me*", "GET /api/issues/{}/heartbeat-context",
		"POST /api/heartbeat-runs/{}/callback", "GET /api/issues/{}/runner-goal", "POST /api/issues/{}/runner-goal/actions",
		"POST /api/agents/{}/messages/take", "POST {c}/activity", "POST {c}/cost-events",
		"POST /api/join-requests/{}/claim-api-key", "POST /api/issues/{}/interactions/{}/cancel"},
	"pages ask this for their shell and their frames": {"GET /api/announcements/current",
		"GET /api/sidebar-preferences/me", "PUT /api/sidebar-preferences/me", "GET {c}/sidebar-preferences/me",
		"PUT {c}/sidebar-preferences/me",
		"GET /api/plugins*", "GET /api/instance/scheduler-heartbeats", "GET {c}/resource-memberships/me",
		"PUT {c}/resource-memberships/me/*", "GET {c}/issues/count", "GET {c}/timeline", "GET /api/issues",
		"GET /api/issues/{}/active-run",
		"GET {c}/agent-configurations", "GET /api/instance/settings", "GET /api/auth/get-session",
		"POST {c}/environments/probe-config", "GET {c}/adapters/{}/detect-model", "GET {c}/adapters/{}/model-profiles",
		"POST {c}/assets/images", "POST {c}/logo",
		"PATCH {c}/branding", "GET /api/assets/{}/content", "GET /api/invites/{}*", "GET /api/board-claim/{}",
		"POST /api/board-claim/{}/claim", "POST /api/auth/revoke-sessions"},
	"programs ask this": {"GET /api/openapi.json", "GET /openapi.json", "GET /healthz", "GET /readyz", "GET /api/llms/*",
		"GET /api/skills/index", "GET /api/skills/available", "GET /api/skills/{}", "GET {c}/events/ws",
		"POST /api/v1/execute", "GET /.well-known/agent-card.json", "GET /a2a/{}/.well-known/agent-card.json",
		"GET /api/v1/executions/{}", "GET /api/v1/companies/{}", "GET /api/v1/companies/{}/*", "GET /api/v1/health",
		"GET /api/v1/mesh/ledger/records", "POST /api/routine-triggers/public/{}/fire"},
	"another verb does it by a second path": {"POST {c}/exports", "POST {c}/exports/preview", "POST {c}/imports/*",
		"* /api/companies/import/", "PATCH /api/agents/{}/instructions-bundle", "PATCH /api/agents/{}/instructions-path",
		"PATCH {c}/members/{}/role-and-grants",
		"GET /api/feedback-traces/{}/bundle", "GET /api/issues/{}/feedback-traces", "POST {c}/teams/catalog/{}/preview",
		"GET /api/teams/catalog/{}/files", "GET {c}/skills/categories", "GET {c}/skills/{}/fork-precheck",
		"GET /api/skills/catalog/{}*",
		"GET {c}/user-secret-definitions/{}/coverage", "GET {c}/secrets/catalog", "PATCH {c}/budgets",
		"PATCH {c}/me/user-secrets/{}", "GET /api/issues/{}/comments/{}", "GET /api/v1/mesh/ledger/entries/{}",
		"GET /api/adapters/{}/config-schema",
		"GET /api/v1/topics/{}", "POST {c}/folders/ensure-my", "GET {c}/tools/{}"},
	"a transcript asks it": {"GET /api/admin/users/{}/company-access", "PUT /api/admin/users/{}/company-access",
		"POST /api/admin/users/{}/*", "POST /api/auth/change-password", "POST /api/auth/sign-*", "POST /api/bootstrap/claim",
		"POST /api/cli-auth/*",
		"GET /api/cli-auth/challenges/{}", "POST /api/invites/{}/accept", "POST {c}/skills/{}/install-update",
		"POST {c}/tools*", "POST /api/v1/mesh/leave", "POST /api/v1/mesh/nodes/{}/revoke", "POST /api/v1/mesh/owner-keys",
		"POST /api/v1/mesh/raft/*", "POST /api/v1/mesh/snapshot", "POST /api/v1/processes*", "GET /api/v1/processes/{}*",
		"POST /api/v1/modules", "* /api/v1/declared-processes/{}"},
	"it takes a run that goes on while one talks to it; see the tests " +
		"of the API": {"PATCH /api/issues/{}/queued-comments/{}", "DELETE /api/issues/{}/queued-comments/{}",
		"PUT /api/issues/{}/queued-comments/order", "POST /api/issues/{}/queued-comments/*"},
	"there is none of it here, see api/absent.go": {"* {c}/managed-agent-profiles", "* {c}/remote-agent-profiles",
		"GET {c}/secret-providers*", "* {c}/secret-provider-configs", "* /api/secret-provider-configs",
		"POST {c}/secrets/remote-import*", "POST /api/instance/database-backups",
		"POST /api/plugins/install"},
	"it is for who writes skills, in an editor": {"POST {c}/skills/install-catalog",
		"POST {c}/skills/scan-projects", "POST {c}/skills/browse-project", "* /api/routines/{}/description/annotations"},
	"onboarding and model local ask this, see their tests": {"POST /api/instance/offers",
		"POST /api/instance/model-providers/from-environment"},
	"it reaches for GitHub": {"POST {c}/skills/import"},
}

// excuses reports whether an excuse covers an operation, METHOD PATH.
func excuses(excuse, operation string) bool {
	if path, any := strings.CutPrefix(excuse, "* "); any {
		_, of, _ := strings.Cut(operation, " ")
		return strings.HasPrefix(of, path)
	}
	begin, open := strings.CutSuffix(excuse, "*")
	return excuse == operation || open && strings.HasPrefix(operation, begin)
}

// everyOperationIsAsked compares the calls with the table of routes: each operation of
// the API was called, or is in notForPeople.
func everyOperationIsAsked(t *testing.T, asked map[string]bool) {
	t.Helper()
	s, err := api.New(api.Config{Node: deaf{}, Serves: routes.Serves()})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	table := map[string]api.Route{}
	for _, r := range s.Routes() {
		table[r.Method+" "+r.Path] = r
	}
	served := map[string]bool{}
	for one := range asked {
		served[best(table, one)] = true
	}
	used := map[string]bool{}
	for _, name := range slices.Sorted(maps.Keys(table)) {
		if served[name] {
			continue
		}
		short := strings.Replace(braces.ReplaceAllString(name, "{}"), "/api/companies/{}", "{c}", 1)
		found := false
		for _, list := range notForPeople {
			for _, begin := range list {
				if excuses(begin, short) {
					found, used[begin] = true, true
				}
			}
		}
		if !found {
			t.Errorf("no command asks for %s (%s)", name, table[name].Summary)
		}
	}
	for _, list := range notForPeople {
		for _, begin := range list {
			if !used[begin] {
				t.Errorf("%s is excused and needs no excuse", begin)
			}
		}
	}
}

// TestNoTwoCommandsShareAName walks the tree: the second of two could not be called.
func TestNoTwoCommandsShareAName(t *testing.T) {
	t.Parallel()
	var walk func(at *cobra.Command)
	walk = func(at *cobra.Command) {
		names := map[string]bool{}
		for _, c := range at.Commands() {
			if names[c.Name()] {
				t.Errorf("%s has two commands %s", at.CommandPath(), c.Name())
			}
			names[c.Name()] = true
			walk(c)
		}
	}
	walk(newRoot())
}

var braces = regexp.MustCompile(`\{[^}]*\}`)

// deaf is a node that only provides its routes.
type deaf struct{}

func (deaf) Submit(context.Context, ledger.Command) (ledger.Receipt, error) {
	return ledger.Receipt{}, errors.New("deaf")
}

func (deaf) View(context.Context, ledger.Read, func(*ledger.Tx) error) (uint64, error) {
	return 0, errors.New("deaf")
}

func (deaf) Entries(context.Context, uint64) iter.Seq2[ledger.Entry, error] {
	return func(func(ledger.Entry, error) bool) {}
}
