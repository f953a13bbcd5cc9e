package routine

import (
	"cmp"
	"slices"
	"strings"

	"github.com/selvage-mesh/selvage/company/core"
	"github.com/selvage-mesh/selvage/company/entity"
	"github.com/selvage-mesh/selvage/ledger"
)

// Kinds of triggers. Persisted: do not rename.
const (
	TriggerSchedule = "schedule"
	TriggerWebhook  = "webhook"
	TriggerAPI      = "api"
)

// How a webhook's deliveries are authenticated. Persisted: do not rename.
const (
	SignedBearer = "bearer"
	SignedHMAC   = "hmac_sha256"
	SignedGitHub = "github_hmac"
	SignedNone   = "none"
)

var signingModes = []string{SignedBearer, SignedHMAC, SignedGitHub, SignedNone}

const (
	// DefaultReplayWindow and its bounds are in seconds.
	DefaultReplayWindow = 300
	MinReplayWindow     = 30
	MaxReplayWindow     = 86_400
	// MaxSeenDeliveries bounds the signed deliveries that are stored for one trigger during
	// its replay window. Further deliveries in that time are refused.
	MaxSeenDeliveries = 2_000
	// forgottenDeliveries bounds the expired deliveries that one command deletes.
	forgottenDeliveries = 50
)

// A RoutineTrigger fires a routine. Its sealed secret is never shown.
type RoutineTrigger struct {
	ID           string           `cbor:"1,keyasint" json:"id"`
	Company      ledger.CompanyID `cbor:"2,keyasint" json:"companyId"`
	Routine      string           `cbor:"3,keyasint" json:"routineId"`
	Kind         string           `cbor:"4,keyasint" json:"kind"`
	Label        core.NullText    `cbor:"5,keyasint,omitempty" json:"label"`
	Enabled      bool             `cbor:"6,keyasint,omitempty" json:"enabled"`
	Cron         core.NullText    `cbor:"7,keyasint,omitempty" json:"cronExpression"`
	Zone         core.NullText    `cbor:"8,keyasint,omitempty" json:"timezone"`
	Next         core.Time        `cbor:"9,keyasint,omitempty" json:"nextRunAt"`
	LastFiredAt  core.Time        `cbor:"10,keyasint,omitempty" json:"lastFiredAt"`
	PublicID     core.NullText    `cbor:"11,keyasint,omitempty" json:"publicId"`
	SecretID     core.NullText    `cbor:"12,keyasint,omitempty" json:"secretId"`
	Signing      core.NullText    `cbor:"13,keyasint,omitempty" json:"signingMode"`
	ReplayWindow *int64           `cbor:"14,keyasint,omitempty" json:"replayWindowSec"`
	RotatedAt    core.Time        `cbor:"15,keyasint,omitempty" json:"lastRotatedAt"`
	LastResult   core.NullText    `cbor:"16,keyasint,omitempty" json:"lastResult"`
	CreatedAgent core.NullText    `cbor:"17,keyasint,omitempty" json:"createdByAgentId"`
	CreatedUser  core.NullText    `cbor:"18,keyasint,omitempty" json:"createdByUserId"`
	UpdatedAgent core.NullText    `cbor:"19,keyasint,omitempty" json:"updatedByAgentId"`
	UpdatedUser  core.NullText    `cbor:"20,keyasint,omitempty" json:"updatedByUserId"`
	CreatedAt    core.Time        `cbor:"21,keyasint" json:"createdAt"`
	UpdatedAt    core.Time        `cbor:"22,keyasint" json:"updatedAt"`
	Sealed       []byte           `cbor:"23,keyasint,omitempty" json:"-"` // the secret, sealed with the mesh's data key
	Due          core.Time        `cbor:"24,keyasint,omitempty" json:"-"` // its time in the routine-due index
	Seen         uint64           `cbor:"25,keyasint,omitempty" json:"-"` // number of stored deliveries
}

// Clone returns a copy that shares no memory with t, as the ledger's cache of
// decoded rows needs it.
func (t RoutineTrigger) Clone() RoutineTrigger {
	t.Sealed = slices.Clone(t.Sealed)
	if t.ReplayWindow != nil {
		t.ReplayWindow = new(*t.ReplayWindow)
	}
	return t
}

func RoutineDueKey(t RoutineTrigger) []byte {
	return ledger.Key("routine-due", ledger.Order(uint64(t.Due)), t.ID)
}

func PublicTriggerKey(public string) []byte { return ledger.Key("routine-public", public) }

// SaveTrigger is the payload of routine_trigger.create and routine_trigger.update. In an
// update a nil field keeps the value.
type SaveTrigger struct {
	ID           string    `cbor:"1,keyasint"`
	Routine      string    `cbor:"2,keyasint"`
	Kind         string    `cbor:"3,keyasint,omitempty"`
	Label        *string   `cbor:"4,keyasint,omitempty"`
	Enabled      *bool     `cbor:"5,keyasint,omitempty"`
	Cron         *string   `cbor:"6,keyasint,omitempty"`
	Zone         *string   `cbor:"7,keyasint,omitempty"`
	Signing      *string   `cbor:"8,keyasint,omitempty"`
	ReplayWindow *int64    `cbor:"9,keyasint,omitempty"`
	PublicID     string    `cbor:"10,keyasint,omitempty"`
	Sealed       []byte    `cbor:"11,keyasint,omitempty"`
	Next         core.Time `cbor:"12,keyasint,omitempty"` // when a schedule fires next
}

// A TriggerResult is what commands about a trigger return.
type TriggerResult struct {
	Trigger  RoutineTrigger  `cbor:"1,keyasint"`
	Revision RoutineRevision `cbor:"2,keyasint"`
}

// TriggerByID finds a trigger of any company.
func TriggerByID(tx *ledger.Tx, id string) (RoutineTrigger, bool) {
	return RoutineTriggers.Get(tx, core.OwnerOf(tx, id), id)
}

// TriggerByPublicID finds a webhook by the public ID in its URL.
func TriggerByPublicID(tx *ledger.Tx, public string) (RoutineTrigger, bool) {
	if len(public) > 64 || strings.Contains(public, "/") {
		return RoutineTrigger{}, false
	}
	v, ok := tx.Get(PublicTriggerKey(public))
	if !ok {
		return RoutineTrigger{}, false
	}
	company, id, _ := strings.Cut(string(v), "/")
	return RoutineTriggers.Get(tx, ledger.CompanyID(company), id)
}

// TriggersOf returns the triggers of a routine, the oldest first.
func TriggersOf(tx *ledger.Tx, r Routine) []RoutineTrigger {
	out := []RoutineTrigger{}
	for id := range triggersOf.IDs(tx, r.Company, r.ID, false) {
		if t, ok := RoutineTriggers.Get(tx, r.Company, id); ok {
			out = append(out, t)
		}
	}
	slices.SortStableFunc(out, func(a, b RoutineTrigger) int {
		return cmp.Or(cmp.Compare(a.CreatedAt, b.CreatedAt), cmp.Compare(a.ID, b.ID))
	})
	return out
}

// DueTriggers returns up to limit schedules that are due at now, earliest first.
func DueTriggers(tx *ledger.Tx, now core.Time, limit int) (out []RoutineTrigger) {
	for k, v := range tx.Scan(ledger.Key("routine-due", ""),
		ledger.Key("routine-due", ledger.Order(uint64(now)+1)), false) {
		if len(out) == limit {
			break
		}
		if t, ok := RoutineTriggers.Get(tx, ledger.CompanyID(v), string(k[len(k)-36:])); ok {
			out = append(out, t)
		}
	}
	return out
}

// storeTrigger writes a trigger. The trigger is in the routine-due index while it can fire:
// a schedule that is on, of an active routine.
func storeTrigger(tx *ledger.Tx, old, t RoutineTrigger, status RoutineStatus) RoutineTrigger {
	t.Due = 0
	if t.Kind == TriggerSchedule && t.Enabled && status == RoutineActive {
		t.Due = t.Next
	}
	if old.Due != t.Due {
		if old.Due != 0 {
			tx.Delete(RoutineDueKey(old))
		}
		if t.Due != 0 {
			tx.Set(RoutineDueKey(t), []byte(t.Company))
		}
	}
	RoutineTriggers.Put(tx, t.Company, t.ID, t)
	return t
}

func dropTrigger(tx *ledger.Tx, t RoutineTrigger) {
	for _, key := range triggerKeys(t) {
		tx.Delete(key)
	}
	for k := range tx.Prefix(ledger.Key("c", string(t.Company), "routine-seen", t.ID, "")) {
		tx.Delete(slices.Clone(k))
	}
	for k := range tx.Prefix(ledger.Key("c", string(t.Company), "routine-seen-at", t.ID, "")) {
		tx.Delete(slices.Clone(k))
	}
	RoutineTriggers.Delete(tx, t.Company, t.ID)
}

// triggerKeys are the keys of a trigger that lie outside its company.
func triggerKeys(t RoutineTrigger) [][]byte {
	keys := [][]byte{core.OwnerKey(t.ID)}
	if t.PublicID != "" {
		keys = append(keys, PublicTriggerKey(string(t.PublicID)))
	}
	if t.Due != 0 {
		keys = append(keys, RoutineDueKey(t))
	}
	return keys
}

func (t RoutineTrigger) with(s SaveTrigger) (RoutineTrigger, error) {
	core.AssignText(&t.Label, s.Label)
	core.Assign(&t.Enabled, s.Enabled)
	if len(t.Label) > entity.MaxName {
		return t, ledger.Refuse(ledger.TooLarge, nil, "The trigger's label is too long")
	}
	switch t.Kind {
	case TriggerSchedule:
		core.AssignText(&t.Cron, s.Cron)
		core.AssignText(&t.Zone, s.Zone)
		if _, err := core.ParseCron(string(t.Cron)); err != nil {
			return t, err
		}
		if t.Zone == "" || len(t.Zone) > 100 {
			return t, ledger.Refuse(ledger.Unprocessable, nil, "A schedule needs a time zone")
		}
		if s.Next != 0 {
			t.Next = s.Next
		}
		if t.Next == 0 {
			return t, ledger.Refuse(ledger.Unprocessable, nil, "The schedule never fires")
		}
	case TriggerWebhook:
		core.AssignText(&t.Signing, s.Signing)
		if s.ReplayWindow != nil {
			t.ReplayWindow = s.ReplayWindow
		}
		if !slices.Contains(signingModes, string(t.Signing)) {
			return t, ledger.Refuse(ledger.Invalid, nil, "Unknown signing mode")
		}
		if w := t.ReplayWindow; w == nil || *w < MinReplayWindow || *w > MaxReplayWindow {
			return t, ledger.Refuse(ledger.Invalid, nil, "The replay window is %d to %d seconds", MinReplayWindow,
				MaxReplayWindow)
		}
	}
	return t, nil
}

func createTrigger(c *ledger.Context, s SaveTrigger) (any, error) {
	r, err := routineOf(c, s.Routine)
	if err != nil {
		return nil, err
	}
	if err := core.CheckNewID(c.Tx, s.ID); err != nil {
		return nil, err
	}
	now := core.TimeOf(c.Now)
	t := RoutineTrigger{ID: s.ID, Company: r.Company, Routine: r.ID, Kind: s.Kind, Enabled: true, CreatedAt: now,
		UpdatedAt: now}
	t.CreatedAgent, t.CreatedUser = author(c)
	t.UpdatedAgent, t.UpdatedUser = t.CreatedAgent, t.CreatedUser
	switch t.Kind {
	case TriggerSchedule:
		t.Zone = "UTC"
	case TriggerWebhook:
		t.Signing, t.ReplayWindow = SignedBearer, new(int64(DefaultReplayWindow))
		if len(s.PublicID) < 16 || len(s.PublicID) > 64 || strings.Contains(s.PublicID, "/") || len(s.Sealed) == 0 ||
			len(s.Sealed) > 512 {
			return nil, ledger.Refuse(ledger.Invalid, nil, "A webhook needs a public ID and a sealed secret")
		}
		if c.Has(PublicTriggerKey(s.PublicID)) {
			return nil, ledger.Refuse(ledger.Conflict, nil, "The public ID is taken")
		}
		t.PublicID, t.Sealed, t.SecretID, t.RotatedAt = core.NullText(s.PublicID), s.Sealed,
			core.NullText(core.DerivedID("trigger-secret", t.ID)), now
	case TriggerAPI:
	default:
		return nil, ledger.Refuse(ledger.Invalid, nil, "Unknown kind of trigger")
	}
	if t, err = t.with(s); err != nil {
		return nil, err
	}
	if t.Kind == TriggerSchedule {
		if err := r.mayRunAlone(); err != nil {
			return nil, err
		}
	}
	if len(TriggersOf(c.Tx, r)) >= MaxTriggers {
		return nil, ledger.Refuse(ledger.Conflict, nil, "A routine has at most %d triggers", MaxTriggers)
	}
	if t.PublicID != "" {
		c.Set(PublicTriggerKey(string(t.PublicID)), []byte(string(t.Company)+"/"+t.ID))
	}
	t = storeTrigger(c.Tx, RoutineTrigger{}, t, r.Status)
	return keepTrigger(c, r, t, "routine.trigger_created", "Created "+t.Kind+" trigger"), nil
}

// keepTrigger stores a revision for a change of a trigger and records it in the activity log.
func keepTrigger(c *ledger.Context, r Routine, t RoutineTrigger, action, summary string) TriggerResult {
	_, v := storeRoutine(c, r, r, summary, "")
	c.Record(ledger.Change{Action: action, EntityType: "routine_trigger", EntityID: t.ID,
		Details: core.Object{}.Str("routineId", r.ID).Str("kind", t.Kind).Bool("enabled", t.Enabled).Close()})
	return TriggerResult{t, v}
}

func triggerOf(c *ledger.Context, id string) (RoutineTrigger, Routine, error) {
	t, ok := RoutineTriggers.Get(c.Tx, c.Cmd.Company, id)
	if !ok {
		return t, Routine{}, errNoTrigger()
	}
	r, err := routineOf(c, t.Routine)
	return t, r, err
}

func errNoTrigger() error {
	return ledger.Refuse(ledger.NotFound, nil, "Routine trigger not found")
}

func updateTrigger(c *ledger.Context, s SaveTrigger) (any, error) {
	old, r, err := triggerOf(c, s.ID)
	if err != nil {
		return nil, err
	}
	t, err := old.with(s)
	if err != nil {
		return nil, err
	}
	if t.Kind == TriggerSchedule && t.Enabled {
		if err := r.mayRunAlone(); err != nil {
			return nil, err
		}
	}
	t.UpdatedAt = core.TimeOf(c.Now)
	t.UpdatedAgent, t.UpdatedUser = author(c)
	t = storeTrigger(c.Tx, old, t, r.Status)
	return keepTrigger(c, r, t, "routine.trigger_updated", "Updated "+t.Kind+" trigger"), nil
}

// rotateTrigger gives a webhook a new secret. The old one is rejected at once.
func rotateTrigger(c *ledger.Context, s SaveTrigger) (any, error) {
	old, r, err := triggerOf(c, s.ID)
	if err != nil {
		return nil, err
	}
	if old.Kind != TriggerWebhook {
		return nil, ledger.Refuse(ledger.Unprocessable, nil, "Only webhook triggers have a secret to rotate")
	}
	if len(s.Sealed) == 0 || len(s.Sealed) > 512 {
		return nil, ledger.Refuse(ledger.Invalid, nil, "A webhook needs a sealed secret")
	}
	t := old
	t.Sealed, t.RotatedAt, t.UpdatedAt = s.Sealed, core.TimeOf(c.Now), core.TimeOf(c.Now)
	t.UpdatedAgent, t.UpdatedUser = author(c)
	t = storeTrigger(c.Tx, old, t, r.Status)
	return keepTrigger(c, r, t, "routine.trigger_secret_rotated", "Rotated the secret of a webhook trigger"), nil
}

func deleteTrigger(c *ledger.Context, s SaveTrigger) (any, error) {
	t, r, err := triggerOf(c, s.ID)
	if err != nil {
		return nil, err
	}
	dropTrigger(c.Tx, t)
	return keepTrigger(c, r, t, "routine.trigger_deleted", "Deleted "+t.Kind+" trigger"), nil
}

// remember stores a signed delivery until it expires, and refuses one that is already stored.
func (t RoutineTrigger) remember(c *ledger.Context, hash string, until core.Time) (RoutineTrigger, error) {
	seen := func(hash string) []byte { return ledger.Key("c", string(t.Company), "routine-seen", t.ID, hash) }
	at := func(until core.Time, hash string) []byte {
		return ledger.Key("c", string(t.Company), "routine-seen-at", t.ID, ledger.Order(uint64(until))+"."+hash)
	}
	prefix := ledger.Key("c", string(t.Company), "routine-seen-at", t.ID, "")
	var past []string
	for k := range c.Tx.Scan(prefix, ledger.Key("c", string(t.Company), "routine-seen-at", t.ID,
		ledger.Order(uint64(core.TimeOf(c.Now)))), false) {
		if len(past) == forgottenDeliveries {
			break
		}
		past = append(past, string(k))
	}
	for _, k := range past {
		_, old, _ := strings.Cut(k[len(prefix):], ".")
		c.Delete([]byte(k))
		c.Delete(seen(old))
		t.Seen--
	}
	if c.Has(seen(hash)) {
		return t, ledger.Refuse(ledger.Conflict, nil, "This webhook was delivered before")
	}
	if t.Seen >= MaxSeenDeliveries {
		return t, ledger.Refuse(ledger.TooMany, nil,
			"The trigger got %d deliveries within its replay window; no more are taken", t.Seen)
	}
	c.Set(seen(hash), nil)
	c.Set(at(until, hash), nil)
	t.Seen++
	return t, nil
}
