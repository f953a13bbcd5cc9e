package govern

import (
	"encoding/base64"
	"slices"
	"strings"

	"github.com/selvage-mesh/selvage/api"
	"github.com/selvage-mesh/selvage/company/core"
	"github.com/selvage-mesh/selvage/company/govern"
	"github.com/selvage-mesh/selvage/governance"
	"github.com/selvage-mesh/selvage/ledger"
)

// amendmentRoutes change the constitution.
func amendmentRoutes() []api.Route {
	const tag, at = "governance", "/api/v1/govern/amendments"
	return []api.Route{
		api.Read(api.Route{Path: at, Kernel: true, Tag: tag, Summary: "List the amendments, newest first", Who: api.Board},
			listAmendments),
		{Method: "POST", Path: at, Kernel: true, Tag: tag, Summary: "Propose an amendment of the constitution",
			In: draftBody{}, Out: amendment{}, Status: 201, Who: api.Admin, Handle: propose},
		{Method: "GET", Path: at + "/{id}", Kernel: true, Tag: tag, Summary: "Show an amendment, and what has to be signed",
			Out: amendment{}, Who: api.Board, Handle: readAmendment},
		{Method: "POST", Path: at + "/{id}/sign", Kernel: true, Tag: tag,
			Summary: "Sign an amendment with a signing key of the board, or as an administrator where it has none",
			In:      signBody{}, Out: amendment{}, Who: api.Admin, Handle: sign},
		{Method: "POST", Path: at + "/{id}/enact", Kernel: true, Tag: tag,
			Summary: "Bring an amendment into force that enough have signed", Out: amendment{}, Who: api.Admin, Handle: enact},
		{Method: "POST", Path: at + "/{id}/withdraw", Kernel: true, Tag: tag, Summary: "Withdraw an amendment",
			Out: amendment{}, Who: api.Admin, Handle: withdraw},
		{Method: "POST", Path: "/api/v1/govern/review", Kernel: true, Tag: tag,
			Summary: "Tell what an amendment would have decided of the last acts", In: reviewBody{}, Out: review{},
			Who: api.Admin, Handle: reviewIt},
	}
}

type (
	ruleBody struct {
		ID        string   `json:"id" minLength:"1" maxLength:"64" doc:"such as ACM-001; one that is there is superseded"`
		Title     string   `json:"title,omitempty" maxLength:"500" maxBytes:"500"`
		Branch    string   `json:"branch" enum:"legislative,executive,judicial"`
		Severity  string   `json:"severity" enum:"advisory,warning,blocking,critical"`
		On        []string `json:"on,omitempty" maxItems:"100" maxLength:"256" doc:"actions, kinds of commands and classes; none: all"`
		When      string   `json:"when" minLength:"1" maxLength:"2048" maxBytes:"2048" doc:"predicate in CEL"`
		Reason    string   `json:"reason" minLength:"1" maxLength:"500" maxBytes:"500" doc:"told when it speaks; {act} stands for the action"`
		Reference string   `json:"reference,omitempty" maxLength:"500" maxBytes:"500"`
	}
	keyBody struct {
		Name   string `json:"name" minLength:"1" maxLength:"100" maxBytes:"100"`
		Public string `json:"publicKey" minLength:"1" maxLength:"64" maxBytes:"64" doc:"32 bytes of Ed25519 in base64"`
	}
	draftBody struct {
		Title       string     `json:"title,omitempty" maxLength:"500" maxBytes:"500"`
		Rules       []ruleBody `json:"rules,omitempty" maxItems:"500" doc:"to add or supersede"`
		Drop        []string   `json:"dropRules,omitempty" maxItems:"500" maxLength:"64"`
		Keys        []keyBody  `json:"keys,omitempty" maxItems:"15" doc:"signing keys to add"`
		DropKeys    []string   `json:"dropKeys,omitempty" maxItems:"15" maxLength:"64"`
		Threshold   *int       `json:"threshold,omitempty" nullable:"false" minimum:"0" maximum:"15" doc:"signatures that an amendment needs; 0: more than half of the keys"`
		Environment *string    `json:"environment,omitempty" nullable:"false" enum:"dev,staging,prod,none" doc:"of the mesh"`
	}
	reviewBody struct {
		Amendment string    `json:"amendmentId,omitempty" maxLength:"20" doc:"one that is proposed, in place of draft"`
		Draft     draftBody `json:"draft,omitempty"`
		Last      int       `json:"last,omitempty" minimum:"1" maximum:"20000" doc:"acts to look at; 12000 unless given"`
	}
	signBody struct {
		Key       string `json:"keyId,omitempty" maxLength:"64" doc:"none: as an administrator, where the board has no signing keys"`
		Signature string `json:"signature,omitempty" maxLength:"128" maxBytes:"128" doc:"Ed25519, of the amendment's message, in base64"`
	}
	amendment struct {
		ID          string      `json:"id"`
		Title       string      `json:"title"`
		Status      string      `json:"status"` // proposed, in_force or withdrawn
		Base        uint64      `json:"base"`   // version that it changes
		Version     *uint64     `json:"version"`
		Height      *uint64     `json:"height"` // in force from that entry on
		Rules       []rule      `json:"rules"`
		Drop        []string    `json:"dropRules"`
		Keys        []key       `json:"keys"`
		DropKeys    []string    `json:"dropKeys"`
		Threshold   *int        `json:"threshold"`
		Environment *string     `json:"environment"`
		Pack        *string     `json:"pack"`
		Digest      string      `json:"digest"`
		Message     string      `json:"message"` // that is signed
		Hash        string      `json:"hash"`    // of the rules that it leads to
		By          string      `json:"proposedBy"`
		At          core.Time   `json:"proposedAt"`
		EndedAt     core.Time   `json:"endedAt"`
		Signatures  []signature `json:"signatures"`
		Signed      int         `json:"signed"`   // signatures that count
		Required    int         `json:"required"` // signatures that it needs
		Stale       bool        `json:"stale"`    // another version is in force by now
	}
	signature struct {
		Key       *string   `json:"keyId"`
		By        string    `json:"by"`
		Signature *string   `json:"signature"` // base64
		At        core.Time `json:"at"`
	}
	review struct {
		Summary    string       `json:"summary"`
		Considered int          `json:"considered"`
		Denied     int          `json:"denied"`
		Deferred   int          `json:"deferred"`
		Warned     int          `json:"warned"`
		Permitted  int          `json:"permitted"`
		Stricter   int          `json:"stricter"`
		Milder     int          `json:"milder"`
		Examples   []difference `json:"examples"`
	}
	difference struct {
		Of      string    `json:"id"` // of the decision, or height of the entry
		Company *string   `json:"companyId"`
		Action  string    `json:"action"`
		Agent   string    `json:"actorId"`
		At      core.Time `json:"at"`
		Was     string    `json:"was"`
		Is      string    `json:"wouldBe"`
		Rule    *string   `json:"rule"`
		Reason  string    `json:"reason"`
	}
)

// draft is what a body proposes.
func (in draftBody) draft() (govern.Draft, error) {
	d := govern.Draft{Title: in.Title, DropKeys: in.DropKeys, Threshold: in.Threshold}
	d.Change.Drop = in.Drop
	for _, r := range in.Rules {
		d.Change.Put = append(d.Change.Put, governance.Rule{ID: r.ID, Title: r.Title, Branch: governance.Branch(r.Branch),
			Severity: governance.Severity(r.Severity),
			On:       r.On, When: strings.TrimSpace(r.When), Reason: r.Reason, Reference: r.Reference})
	}
	for _, k := range in.Keys {
		public, err := base64.StdEncoding.DecodeString(k.Public)
		if err != nil {
			return d, api.Invalid("keys: publicKey: want base64")
		}
		d.AddKeys = append(d.AddKeys, govern.SigningKey{ID: govern.KeyID(public), Name: k.Name, Public: public})
	}
	if in.Environment != nil {
		d.Environment = classOf(*in.Environment)
	}
	return d, nil
}

func shown(s govern.Constitution, a govern.Amendment) amendment {
	d := a.Draft
	out := amendment{ID: a.ID, Title: d.Title, Status: string(a.Status), Base: d.Base, Rules: []rule{},
		Drop: append([]string{}, d.Change.Drop...), Keys: []key{}, DropKeys: append([]string{}, d.DropKeys...),
		Threshold: d.Threshold, Pack: orNull(d.Pack), Digest: a.Digest, Message: string(govern.Message(a)), Hash: a.Hash,
		By: a.By, At: a.At, EndedAt: a.EndedAt, Signatures: []signature{},
		Signed: s.Signed(a), Required: s.Required(), Stale: a.Status == govern.Proposed && d.Base != s.Version}
	if a.Version > 0 {
		out.Version, out.Height = &a.Version, &a.Height
		out.Signed, out.Required = len(a.Signatures), min(out.Required, len(a.Signatures))
	}
	if d.Environment != nil {
		out.Environment = new(string(*d.Environment))
	}
	for _, r := range d.Change.Put {
		out.Rules = append(out.Rules, ruleOf(r))
	}
	for _, k := range d.AddKeys {
		out.Keys = append(out.Keys, key{k.ID, k.Name, k.Public})
	}
	for _, sig := range a.Signatures {
		out.Signatures = append(out.Signatures, signature{orNull(sig.Key), sig.By,
			orNull(base64.StdEncoding.EncodeToString(sig.Bytes)), sig.At})
	}
	return out
}

func listAmendments(tx *ledger.Tx, rc *api.Request) ([]amendment, error) {
	s, err := govern.InForce(tx)
	out := []amendment{}
	for a := range govern.Amendments(tx) {
		if out = append(out, shown(s, a)); len(out) == govern.MaxListed {
			break
		}
	}
	return out, err
}

func readAmendment(rc *api.Request) (api.Response, error) { return showAmendment(rc, rc.Path("id")) }

func showAmendment(rc *api.Request, id string) (api.Response, error) {
	return api.Viewed(rc, func(tx *ledger.Tx) (amendment, error) {
		s, err := govern.InForce(tx)
		if err != nil {
			return amendment{}, err
		}
		a, ok := govern.AmendmentOf(tx, id)
		if !ok {
			return amendment{}, errNoAmendment()
		}
		return shown(s, a), nil
	})
}

func errNoAmendment() error { return api.NotFound("Amendment not found") }

func propose(rc *api.Request) (api.Response, error) {
	in, err := api.Body[draftBody](rc)
	if err != nil {
		return badBody(err)
	}
	draft, err := in.draft()
	if err != nil {
		return api.Response{}, err
	}
	a, err := api.Do[govern.Amendment](rc, govern.KindPropose, "", draft)
	if err != nil {
		return api.Response{}, err
	}
	return showAmendment(rc, a.ID)
}

func sign(rc *api.Request) (api.Response, error) {
	in, err := api.Body[signBody](rc)
	if err != nil {
		return badBody(err)
	}
	signature, err := base64.StdEncoding.DecodeString(in.Signature)
	if err != nil {
		return api.Response{}, api.Invalid("signature: want base64")
	}
	return change(rc, govern.KindSign, govern.Sign{Amendment: rc.Path("id"), Key: in.Key, Signature: signature})
}

func enact(rc *api.Request) (api.Response, error) {
	return change(rc, govern.KindEnact, govern.NameAmendment{Amendment: rc.Path("id")})
}

func withdraw(rc *api.Request) (api.Response, error) {
	return change(rc, govern.KindWithdraw, govern.NameAmendment{Amendment: rc.Path("id")})
}

func change(rc *api.Request, kind string, payload any) (api.Response, error) {
	if _, err := rc.Submit(kind, "", payload); err != nil {
		return api.Response{}, err
	}
	return showAmendment(rc, rc.Path("id"))
}

// reviewIt is a dry run: nothing is stored.
func reviewIt(rc *api.Request) (api.Response, error) {
	in, err := api.Body[reviewBody](rc)
	if err != nil {
		return badBody(err)
	}
	if in.Last == 0 {
		in.Last = 12_000
	}
	return api.Viewed(rc, func(tx *ledger.Tx) (review, error) {
		draft, err := in.Draft.draft()
		if err != nil {
			return review{}, err
		}
		if in.Amendment != "" {
			a, ok := govern.AmendmentOf(tx, in.Amendment)
			if !ok {
				return review{}, errNoAmendment()
			}
			draft = a.Draft
		}
		r, err := govern.ReviewOf(tx, draft, in.Last, slices.Concat(seen(tx, rc, ""), []ledger.CompanyID{""}))
		if err != nil {
			return review{}, err
		}
		out := review{Summary: r.Summary(), Considered: r.Considered, Denied: r.Decided[governance.Deny],
			Deferred: r.Decided[governance.Defer], Warned: r.Decided[governance.Warn],
			Permitted: r.Decided[governance.Permit], Stricter: r.Stricter, Milder: r.Milder, Examples: []difference{}}
		for _, x := range r.Examples {
			out.Examples = append(out.Examples, difference{x.Of, orNull(x.Company), x.Action, x.Agent, x.At, x.Was.String(),
				x.Is.String(), orNull(x.Rule), x.Reason})
		}
		return out, nil
	})
}
