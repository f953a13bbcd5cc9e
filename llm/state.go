package llm

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/selvage-mesh/selvage/company/conceal"
	"github.com/selvage-mesh/selvage/company/entity"
	"github.com/selvage-mesh/selvage/company/money"
	"github.com/selvage-mesh/selvage/company/secret"
	"github.com/selvage-mesh/selvage/ledger"
)

// A Caller is the run that a call is for, as its token says.
type Caller struct {
	Company    ledger.CompanyID
	Agent, Run string
}

// errEnded says why a call may not continue.
var (
	errEnded = refuse(403, "run_not_running",
		"The run has ended, or does not run on this node; its model calls end with it")
	errLease = refuse(503, "no_authority", "This node may not act for its runs now; it lost touch with the mesh")
)

// A scene is everything that a call needs from the state of the mesh.
type scene struct {
	run                entity.Run
	project, issue     string
	goal, code         string
	labels             []string              // of this node, by the roster: "zone=eu"
	providers          []money.ModelProvider // the company's before the mesh's
	companys, everyone []money.ModelPrice
}

// readScene reads the scene of a call from the state.
func (g *Gateway) readScene(who Caller) (s scene, err error) {
	if !g.conf.Holds() {
		return s, errLease
	}
	err = g.conf.View(func(tx *ledger.Tx) error {
		var ok bool
		if s.run, ok = g.running(tx, who); !ok {
			return errEnded
		}
		if i, ok := entity.IssueOf(tx, who.Company, s.run.Context.IssueID); ok && i.ID != "" {
			s.issue, s.project, s.goal, s.code = i.ID, i.Project, i.Goal, i.BillingCode
		}
		g.fill(tx, who.Company, &s)
		return nil
	})
	return s, err
}

// running returns the caller's run if it is running on this node.
func (g *Gateway) running(tx *ledger.Tx, who Caller) (entity.Run, bool) {
	r, ok := entity.RunOf(tx, who.Company, who.Run)
	return r, ok && r.Agent == who.Agent && r.Status == entity.RunRunning && r.Node == g.conf.Self
}

// checkRun returns nil while a call of who may continue.
func (g *Gateway) checkRun(who Caller) error {
	if !g.conf.Holds() {
		return errLease
	}
	err := g.conf.View(func(tx *ledger.Tx) error {
		if _, ok := g.running(tx, who); !ok {
			return errEnded
		}
		return nil
	})
	if _, ours := err.(*refusal); err != nil && !ours {
		return nil // the state can not be read just now; the lease decides
	}
	return err
}

// A target is an upstream that answers to a name, and what it calls the model.
type target struct {
	p     money.ModelProvider
	model string
	rank  int // the lower the better
}

// usual are the model patterns of upstreams without configured models.
var usual = map[money.ModelKind][]string{
	money.ModelAnthropic:  {"claude-*"},
	money.ModelOpenAI:     {"gpt-*", "o1*", "o3*", "o4*", "chatgpt-*", "codex-*", "text-embedding-*"},
	money.ModelGemini:     {"gemini-*"},
	money.ModelOpenRouter: {},
	money.ModelOllama:     {"*"},
	money.ModelVLLM:       {"*"},
	money.ModelLlamaCpp:   {"*"},
}

// match returns p's own name for a model, and how specific the matching pattern is.
func match(p money.ModelProvider, name string) (model string, rank int, ok bool) {
	if rest, found := strings.CutPrefix(name, p.Name+"/"); found && rest != "" {
		if len(p.Models) == 0 {
			return rest, 0, true
		}
		if model, _, ok = match(money.ModelProvider{Models: p.Models, Kind: p.Kind}, rest); ok {
			return model, 0, true
		}
	}
	if rest, found := strings.CutPrefix(name, "local/"); found && p.Kind.Local() && rest != "" {
		if len(p.Models) == 0 {
			return rest, 1, true
		}
		if model, _, ok = match(money.ModelProvider{Models: p.Models, Kind: p.Kind}, rest); ok {
			return model, 1, true
		}
	}
	best := -1
	for _, r := range p.Models {
		if fits(r.Name, name) && says(r.Name) > best {
			best, model = says(r.Name), name
			if r.As != "" {
				model = r.As
			}
		}
	}
	switch {
	case best >= 1_000:
		return model, 2, true
	case best >= 0:
		return model, 1_000 - best, true
	case len(p.Models) > 0 || strings.HasPrefix(name, "tier/"):
		return "", 0, false
	}
	for _, u := range usual[p.Kind] {
		if fits(u, name) {
			return name, 1_000 - says(u) + 1, true
		}
	}
	return "", 0, false
}

// uses reports whether this node may call an upstream.
func (s scene) uses(p money.ModelProvider) bool {
	return !p.Disabled && !slices.ContainsFunc(p.Labels, func(l string) bool { return !slices.Contains(s.labels, l) })
}

// targetsOf returns the upstreams that serve a name and that this node may use, best first: one
// that was named, then those whose pattern is most specific, then by priority, and the company's
// before the mesh's.
func (s scene) targetsOf(name string) (out []target) {
	for _, p := range s.providers {
		if model, rank, ok := match(p, name); ok && s.uses(p) {
			out = append(out, target{p, model, rank})
		}
	}
	slices.SortStableFunc(out, func(a, b target) int {
		if a.rank != b.rank {
			return a.rank - b.rank
		}
		return a.p.Priority - b.p.Priority
	})
	return out[:min(len(out), maxTargets)]
}

// speaks returns the dialect of the request to an upstream for a client that uses dialect d;
// false if the upstream supports none. Gemini gets its own dialect, unless the client's is
// passed on unchanged.
func speaks(p money.ModelProvider, d dialect) (dialect, bool) {
	switch {
	case d == embeddings:
		return d, p.Kind != money.ModelAnthropic
	case p.Kind == money.ModelAnthropic:
		return messages, true
	case p.Kind == money.ModelOpenAI && d == responses:
		return responses, true
	case d != chat:
		if _, ok := googleBase(p); ok {
			return generate, true
		}
	}
	return chat, true
}

// errNoKey says that this node can not decrypt the key of an upstream.
var errNoKey = errors.New("its key can not be opened on this node")

// openKey decrypts the key of an upstream, "" if it has none. The key is kept for one call and
// used only in the request's header.
func (g *Gateway) openKey(ctx context.Context, p money.ModelProvider, run entity.Run) (key string, err error) {
	if !p.HasKey() {
		return "", nil
	}
	if g.conf.Open == nil {
		return "", errNoKey
	}
	of, use := ledger.CompanyID(p.Company), secret.SecretUse{}
	var plain []byte
	err = g.conf.View(func(tx *ledger.Tx) error {
		if p.Sealed != "" {
			sealed, err := base64.StdEncoding.DecodeString(p.Sealed)
			if err != nil {
				return err
			}
			plain, err = g.conf.Open(tx, conceal.ValueAAD(g.conf.Mesh, of, p.ID, money.ModelKeyPath), sealed)
			return err
		}
		s, ok := secret.SecretOf(tx, of, string(p.Secret))
		if !ok || s.Status != "active" {
			return errors.New("its secret is gone or not active")
		}
		v, ok := secret.SecretVersionOf(tx, s, 0)
		if !ok {
			return errors.New("its secret has no value")
		}
		use = secret.SecretUse{Secret: s.ID, Version: v.Version, Path: "modelProvider." + p.Name}
		plain, err = g.conf.Open(tx, conceal.SecretAAD(g.conf.Mesh, of, s.ID, v.Version), v.Sealed)
		return err
	})
	if err != nil {
		return "", fmt.Errorf("%w: %w", errNoKey, err)
	}
	if use.Secret != "" && run.ID != "" && g.conf.Note != nil && g.firstUse(run.ID, use) {
		if err := g.conf.Note(ctx, run, use); err != nil {
			return "", fmt.Errorf("the use of a secret could not be noted: %w", err)
		}
	}
	return string(plain), nil
}

// firstUse reports whether a run uses a version of a secret for the first time, as far as this
// node remembers. One entry records the use for all calls of the run.
func (g *Gateway) firstUse(run string, use secret.SecretUse) bool {
	key := fmt.Sprintf("%s %s %d", run, use.Secret, use.Version)
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.noted[key] {
		return false
	}
	if len(g.noted) >= maxModels {
		clear(g.noted)
	}
	g.noted[key] = true
	return true
}
