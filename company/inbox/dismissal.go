package inbox

import (
	"cmp"
	"slices"
	"time"

	"github.com/selvage-mesh/selvage/company"
	"github.com/selvage-mesh/selvage/company/core"
	"github.com/selvage-mesh/selvage/ledger"
)

// A Dismissal says that a user dismissed an item of the inbox: until there is new activity
// on it, or until a time.
type Dismissal struct {
	ID           string           `cbor:"1,keyasint" json:"id"`
	Company      ledger.CompanyID `cbor:"2,keyasint" json:"companyId"`
	User         string           `cbor:"3,keyasint" json:"userId"`
	Key          string           `cbor:"4,keyasint" json:"itemKey"`
	Kind         string           `cbor:"5,keyasint" json:"kind"` // dismiss or snooze
	SnoozedUntil core.Time        `cbor:"6,keyasint,omitempty" json:"snoozedUntil"`
	DismissedAt  core.Time        `cbor:"7,keyasint" json:"dismissedAt"`
	CreatedAt    core.Time        `cbor:"8,keyasint" json:"createdAt"`
	UpdatedAt    core.Time        `cbor:"9,keyasint" json:"updatedAt"`
}

// Holds reports whether the dismissal hides, at time now, an item whose last activity was at
// time activity.
func (d Dismissal) Holds(activity, now core.Time) bool {
	if d.Kind == "snooze" {
		return now < d.SnoozedUntil
	}
	return activity <= d.DismissedAt
}

// Dismiss is the payload of inbox.dismiss and inbox.restore.
type Dismiss struct {
	Key   string    `cbor:"1,keyasint"`
	Until core.Time `cbor:"2,keyasint,omitempty"` // for snooze
}

const (
	// maxDismissals bounds the dismissals of one user. At the bound, the oldest is deleted.
	maxDismissals = 1_000
	// MaxItemKey bounds the key of an item, in bytes.
	MaxItemKey = 200
)

// dismissals are kept by <hash of the user>.<hash of the key>.
var dismissals = ledger.NewTable[string, Dismissal]("inbox-dismissal")

func dismissalRow(user, key string) string { return core.TextKey(user) + "." + core.TextKey(key) }

const (
	KindInboxDismiss = "inbox.dismiss"
	KindInboxRestore = "inbox.restore"
)

var dismissalKinds = []company.Kind{
	{Name: KindInboxDismiss, From: company.FromBoard, Weight: company.Weights.Marks, Do: ledger.Typed(dismiss)},
	{Name: KindInboxRestore, From: company.FromBoard, Weight: company.Weights.Marks, Do: ledger.Typed(restoreToInbox)},
}

// DismissalsOf returns the dismissals of a user in a company, newest first.
func DismissalsOf(tx *ledger.Tx, company ledger.CompanyID, user string) []Dismissal {
	out := []Dismissal{}
	for _, v := range tx.Prefix(dismissals.Key(company, core.TextKey(user)+".")) {
		var d Dismissal
		if err := ledger.Unmarshal(v, &d); err != nil {
			panic("company: dismissal does not decode: " + err.Error())
		}
		out = append(out, d)
	}
	slices.SortFunc(out, func(a, b Dismissal) int {
		return cmp.Or(cmp.Compare(b.UpdatedAt, a.UpdatedAt), cmp.Compare(a.Key, b.Key))
	})
	return out
}

func dismiss(c *ledger.Context, p Dismiss) (any, error) {
	company, user, now := c.Cmd.Company, c.Cmd.Actor.ID, core.TimeOf(c.Now)
	if p.Key == "" || len(p.Key) > MaxItemKey {
		return nil, ledger.Refuse(ledger.Invalid, nil, "itemKey is needed, at most %d bytes", MaxItemKey)
	}
	row := dismissalRow(user, p.Key)
	d, ok := dismissals.Get(c.Tx, company, row)
	if !ok {
		d = Dismissal{ID: core.DerivedID("dismissal", string(company), user, p.Key), Company: company, User: user, Key: p.Key,
			CreatedAt: now}
		if all := DismissalsOf(c.Tx, company, user); len(all) >= maxDismissals {
			dismissals.Delete(c.Tx, company, dismissalRow(user, all[len(all)-1].Key))
		}
	}
	d.Kind, d.SnoozedUntil, d.DismissedAt, d.UpdatedAt = "dismiss", p.Until, now, now
	if p.Until != 0 {
		d.Kind = "snooze"
	}
	dismissals.Put(c.Tx, company, row, d)
	c.Record(ledger.Change{Action: "inbox.dismissed", EntityType: "inbox_item", EntityID: p.Key,
		Details: core.Object{}.Str("kind", d.Kind).Time("snoozedUntil", d.SnoozedUntil).Close()})
	return d, nil
}

func restoreToInbox(c *ledger.Context, p Dismiss) (any, error) {
	row := dismissalRow(c.Cmd.Actor.ID, p.Key)
	if _, ok := dismissals.Get(c.Tx, c.Cmd.Company, row); !ok {
		return nil, ledger.Refuse(ledger.NotFound, nil, "Inbox dismissal not found")
	}
	dismissals.Delete(c.Tx, c.Cmd.Company, row)
	c.Record(ledger.Change{Action: "inbox.restored", EntityType: "inbox_item", EntityID: p.Key})
	return nil, nil
}

// ParseTime reads an ISO time.
func ParseTime(s string) (core.Time, error) {
	t, err := time.Parse(time.RFC3339, s)
	return core.TimeOf(t), err
}
