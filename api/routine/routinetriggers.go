package routine

import (
	"crypto/hmac"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"encoding/json"
	"errors"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/selvage-mesh/selvage/api"
	"github.com/selvage-mesh/selvage/company/conceal"
	"github.com/selvage-mesh/selvage/company/core"
	"github.com/selvage-mesh/selvage/company/entity"
	"github.com/selvage-mesh/selvage/company/routine"
	"github.com/selvage-mesh/selvage/identity"
	"github.com/selvage-mesh/selvage/ledger"
	"github.com/selvage-mesh/selvage/scheduler"
)

// newTrigger is the body that adds a trigger, patchTrigger the one that changes it.
type newTrigger struct {
	Kind string `json:"kind" enum:"schedule,webhook,api"`
	patchTrigger
}

type patchTrigger struct {
	Label        api.Opt[string] `json:"label" maxLength:"120"`
	Enabled      *bool           `json:"enabled,omitempty" nullable:"false"`
	Cron         api.Opt[string] `json:"cronExpression" minLength:"1" maxLength:"200"`
	Zone         api.Opt[string] `json:"timezone" minLength:"1" maxLength:"100"`
	Signing      api.Opt[string] `json:"signingMode" enum:"bearer,hmac_sha256,github_hmac,none"`
	ReplayWindow api.Opt[int64]  `json:"replayWindowSec" minimum:"30" maximum:"86400"`
}

// TriggerAnswer is a trigger with its secret, which is shown only once.
type TriggerAnswer struct {
	Trigger  routine.RoutineTrigger `json:"trigger"`
	Secret   *triggerSecret         `json:"secretMaterial"`
	Revision routineRevision        `json:"revision"`
}

type triggerSecret struct {
	URL    string `json:"webhookUrl"`
	Secret string `json:"webhookSecret"`
}

func (in patchTrigger) command() routine.SaveTrigger {
	return routine.SaveTrigger{Label: api.TextOf(in.Label), Enabled: in.Enabled, Cron: in.Cron.Pointer(),
		Zone: in.Zone.Pointer(), Signing: in.Signing.Pointer(),
		ReplayWindow: in.ReplayWindow.Pointer()}
}

// fits refuses fields that a kind of trigger does not have, and removing required fields
// from an existing trigger.
func (in patchTrigger) fits(kind string, there bool) error {
	for _, f := range []struct {
		name, of  string
		set, null bool
	}{
		{"cronExpression", routine.TriggerSchedule, in.Cron.Set, in.Cron.Null}, {"timezone", routine.TriggerSchedule,
			in.Zone.Set, in.Zone.Null},
		{"signingMode", routine.TriggerWebhook, in.Signing.Set, in.Signing.Null}, {"replayWindowSec", routine.TriggerWebhook,
			in.ReplayWindow.Set, in.ReplayWindow.Null},
	} {
		switch {
		case f.set && !f.null && f.of != kind:
			return api.Unprocessable(f.name+": only a trigger of kind "+f.of+" has one; this one is of kind "+kind, nil)
		case f.null && there && f.of == kind:
			return api.ValidationError(api.Issue{Code: "invalid_type", Path: []any{f.name},
				Message: "Invalid input: a trigger of kind " + kind + " can not be without it"})
		}
	}
	return nil
}

// material returns what the caller needs to deliver a webhook.
func material(rc *api.Request, t routine.RoutineTrigger, secret string) *triggerSecret {
	scheme := "http"
	if rc.HTTP.TLS != nil {
		scheme = "https"
	}
	return &triggerSecret{scheme + "://" + rc.HTTP.Host + "/api/routine-triggers/public/" + string(t.PublicID) +
		"/fire", secret}
}

func createTrigger(rc *api.Request) (api.Response, error) {
	in, err := api.Body[newTrigger](rc)
	if err == nil {
		err = in.fits(in.Kind, false)
	}
	if err != nil {
		return api.Response{}, err
	}
	r, _, err := api.FindRoutine(rc)
	if err != nil {
		return api.Response{}, err
	}
	p, secret := in.command(), ""
	p.ID, p.Routine, p.Kind = api.NewID(), r.ID, in.Kind
	switch in.Kind {
	case routine.TriggerSchedule:
		if p.Next, err = scheduler.NextRun(in.Cron.Or(""), in.Zone.Or("UTC"), rc.Now()); err != nil {
			return api.Response{}, err
		}
	case routine.TriggerWebhook:
		p.PublicID = api.RandomHex(12)
		if secret, p.Sealed, err = rc.NewSecret(r.Company, p.ID); err != nil {
			return api.Response{}, err
		}
	}
	done, err := api.Do[routine.TriggerResult](rc, routine.KindRoutineTriggerCreate, r.Company, p)
	if err != nil {
		return api.Response{}, err
	}
	out := TriggerAnswer{Trigger: done.Trigger, Revision: showRevision(done.Revision)}
	if secret != "" {
		out.Secret = material(rc, done.Trigger, secret)
	}
	return api.OK(out), nil
}

func findTrigger(rc *api.Request) (t routine.RoutineTrigger, err error) {
	err = rc.View(func(tx *ledger.Tx) error {
		var ok bool
		if t, ok = routine.TriggerByID(tx, strings.ToLower(rc.Path("id"))); !ok || !api.Seen(tx, rc, t.Company) {
			return api.NotFound("Routine trigger not found")
		}
		return nil
	})
	return t, err
}

func updateTrigger(rc *api.Request) (api.Response, error) {
	in, err := api.Body[patchTrigger](rc)
	if err != nil {
		return api.Response{}, err
	}
	t, err := findTrigger(rc)
	if err != nil {
		return api.Response{}, err
	}
	if err := in.fits(t.Kind, true); err != nil {
		return api.Response{}, err
	}
	p := in.command()
	p.ID = t.ID
	if t.Kind == routine.TriggerSchedule && (p.Cron != nil || p.Zone != nil || p.Enabled != nil && *p.Enabled) {
		if p.Next, err = scheduler.NextRun(in.Cron.Or(string(t.Cron)), in.Zone.Or(string(t.Zone)), rc.Now()); err != nil {
			return api.Response{}, err
		}
	}
	done, err := api.Do[routine.TriggerResult](rc, routine.KindRoutineTriggerUpdate, t.Company, p)
	return api.OK(done.Trigger), err
}

func deleteTrigger(rc *api.Request) (api.Response, error) {
	t, err := findTrigger(rc)
	if err != nil {
		return api.Response{}, err
	}
	_, err = api.Do[routine.TriggerResult](rc, routine.KindRoutineTriggerDelete, t.Company, routine.SaveTrigger{ID: t.ID})
	return api.OK(struct {
		OK bool `json:"ok"`
	}{true}), err
}

func rotateTrigger(rc *api.Request) (api.Response, error) {
	t, err := findTrigger(rc)
	if err != nil {
		return api.Response{}, err
	}
	if t.Kind != routine.TriggerWebhook {
		return api.Response{}, api.Unprocessable("Only webhook triggers have a secret to rotate", nil)
	}
	secret, sealed, err := rc.NewSecret(t.Company, t.ID)
	if err != nil {
		return api.Response{}, err
	}
	done, err := api.Do[routine.TriggerResult](rc, routine.KindRoutineTriggerRotate, t.Company,
		routine.SaveTrigger{ID: t.ID, Sealed: sealed})
	if err != nil {
		return api.Response{}, err
	}
	return api.OK(TriggerAnswer{done.Trigger, material(rc, done.Trigger, secret), showRevision(done.Revision)}), nil
}

// errSignature does not say what is wrong with a signature.
var errSignature = api.Unauthorized("Webhook signature did not verify")

// openSecret decrypts a trigger's secret on this node.
func openSecret(rc *api.Request, t routine.RoutineTrigger) ([]byte, error) {
	s := rc.Server
	aad := conceal.TriggerAAD(string(s.Cfg.Mesh), t.Company, t.ID)
	if s.Cfg.Unseal != nil {
		return s.Cfg.Unseal(rc.Context(), aad, t.Sealed)
	}
	if s.Cfg.DataKeys != nil {
		for _, key := range s.Cfg.DataKeys() {
			if b, err := identity.Open(key, aad, t.Sealed); err == nil {
				return b, nil
			}
		}
	}
	return nil, api.Unavailable("This node can not open the trigger's secret; ask another node")
}

// fireWebhook receives a delivery at the public address of a webhook. It verifies the
// delivery; applying the command detects a repetition.
func fireWebhook(rc *api.Request) (api.Response, error) {
	var t routine.RoutineTrigger
	err := rc.ViewBySecret(func(tx *ledger.Tx) error {
		var ok bool
		if t, ok = routine.TriggerByPublicID(tx, strings.ToLower(rc.Path("publicId"))); !ok ||
			t.Kind != routine.TriggerWebhook {
			return api.NotFound("Routine trigger not found")
		}
		return nil
	})
	if err != nil {
		return api.Response{}, err
	}
	body, err := rc.RawBody()
	if err != nil {
		return api.Response{}, err
	}
	p := routine.FireRoutine{Run: api.NewID(), Trigger: t.ID,
		IdempotencyKey: api.Cut(rc.HTTP.Header.Get(api.HeaderIdempotency), 255)}
	if p.Delivery, p.Until, err = verify(rc, t, body); err != nil {
		return api.Response{}, err
	}
	if err := rc.View(func(tx *ledger.Tx) error { return mayFire(tx, t) }); err != nil {
		return api.Response{}, err
	}
	if len(strings.TrimSpace(string(body))) > 0 {
		if err := api.WellFormed(body); err != nil {
			return api.Response{}, err
		}
		p.Payload = body
		if body[0] != '{' && strings.TrimSpace(string(body))[0] != '{' {
			p.Payload, _ = json.Marshal(map[string]json.RawMessage{"body": body})
		}
	}
	// The delivery has no user or agent: this node submits it as the system.
	rc.Actor = ledger.Actor{Type: "system", ID: "routine-webhook"}
	rc.Credential = ledger.Credential{Kind: "node", ID: string(rc.Server.Cfg.NodeID)}
	run, err := api.Do[routine.RoutineRun](rc, routine.KindRoutineFire, t.Company, p)
	return api.OK(showRoutineRun(run)), err
}

// mayFire refuses a delivery to a company that is paused or archived, as its schedules
// do not fire either. The delivery is not recorded, so that it may be sent again.
func mayFire(tx *ledger.Tx, t routine.RoutineTrigger) error {
	row, ok := entity.CompanyOf(tx, t.Company)
	if !ok || row.Status == entity.CompanyActive {
		return nil // applying the command refuses a deleted one
	}
	return api.Conflict("The company is not active", map[string]any{"companyId": row.ID, "status": row.Status,
		"triggerId": t.ID})
}

// verify checks a delivery's credential by the trigger's mode, in constant time. For a
// signature it returns an ID, and how long to keep it, so that the signature is accepted
// only once.
func verify(rc *api.Request, t routine.RoutineTrigger, body []byte) (delivery string, until core.Time, err error) {
	if t.Signing == routine.SignedNone {
		return "", 0, nil
	}
	secret, err := openSecret(rc, t)
	if err != nil {
		return "", 0, err
	}
	defer clear(secret)
	now, window := rc.Now(), int64(routine.DefaultReplayWindow)
	if t.ReplayWindow != nil {
		window = *t.ReplayWindow
	}
	head := rc.HTTP.Header
	sign := func(parts ...[]byte) string {
		h := hmac.New(sha256.New, secret)
		for _, p := range parts {
			h.Write(p)
		}
		return hex.EncodeToString(h.Sum(nil))
	}
	same := func(given, want string) bool {
		given = strings.ToLower(strings.TrimPrefix(strings.TrimSpace(given), "sha256="))
		return subtle.ConstantTimeCompare([]byte(given), []byte(want)) == 1
	}
	switch t.Signing {
	case routine.SignedBearer:
		token, given, err := api.ParseBearer(head["Authorization"])
		if err != nil || !given || subtle.ConstantTimeCompare([]byte(token), secret) != 1 {
			return "", 0, api.ErrBearer
		}
		return "", 0, nil
	case routine.SignedGitHub:
		want := sign(body)
		if !same(head.Get("X-Hub-Signature-256"), want) {
			return "", 0, errSignature
		}
		return want, core.TimeOf(now.Add(time.Duration(window) * time.Second)), nil
	case routine.SignedHMAC:
		stamp := strings.TrimSpace(head.Get("X-Paperclip-Timestamp"))
		sent, err := sentAt(stamp)
		if err != nil {
			return "", 0, errSignature
		}
		if age := now.Sub(sent).Abs(); age > time.Duration(window)*time.Second {
			return "", 0, api.Unauthorized("Webhook timestamp is outside the replay window")
		}
		want := sign([]byte(stamp), []byte("."), body)
		if !same(head.Get("X-Paperclip-Signature"), want) {
			return "", 0, errSignature
		}
		// As long as any node accepts the timestamp; their clocks differ a little.
		return want, core.TimeOf(sent.Add(time.Duration(window)*time.Second + time.Minute)), nil
	}
	return "", 0, errSignature
}

// sentAt parses a timestamp in seconds or milliseconds since 1970, or as RFC 3339.
func sentAt(text string) (time.Time, error) {
	n, err := strconv.ParseInt(text, 10, 64)
	switch {
	case err != nil:
		return time.Parse(time.RFC3339Nano, text)
	case n < 0 || n > math.MaxInt64/1_000_000:
		return time.Time{}, errors.New("no timestamp")
	case n >= 100_000_000_000: // as seconds this would be after the year 5138
		return time.UnixMilli(n), nil
	}
	return time.Unix(n, 0), nil
}
