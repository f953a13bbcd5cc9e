package topic_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/selvage-mesh/selvage/company/companytest"
	"github.com/selvage-mesh/selvage/company/core"
	"github.com/selvage-mesh/selvage/company/topic"
	"github.com/selvage-mesh/selvage/ledger"
)

func texts(d *companytest.Desk, pattern string, from uint64, limit int) (out string) {
	for _, m := range topic.Read(d.Tx, d.Company, pattern, from, limit, core.TimeOf(d.Now)) {
		out += m.Text + " "
	}
	return strings.TrimSpace(out)
}

// Messages are read in the order of their heights, whatever their topics, from any height;
// and what a topic keeps is bounded by number, bytes and age.
func TestMessagesAreKeptAndReplayed(t *testing.T) {
	t.Parallel()
	d := companytest.NewDesk(t)
	heights := map[string]uint64{}
	publish := func(name, text string) {
		var p topic.Published
		d.Must(t, companytest.Board, topic.KindPublish, topic.Publish{Topic: name, Text: text}, &p)
		heights[text] = p.Height
	}
	for n := range 6 {
		publish([]string{"a.x", "a.y", "b"}[n%3], fmt.Sprint("m", n))
	}
	for _, c := range []struct {
		pattern, want string
		from          uint64
		limit         int
	}{
		{"**", "m0 m1 m2 m3 m4 m5", 0, 100}, {"a.*", "m0 m1 m3 m4", 0, 100}, {"b", "m2 m5", 0, 100}, {"**", "m0 m1", 0, 2},
		{"**", "m3 m4 m5", heights["m2"] + 1, 100}, {"a.*", "m3 m4", heights["m3"], 100}, {"**", "", heights["m5"] + 1, 100},
		{"none", "", 0, 100},
	} {
		if got := texts(d, c.pattern, c.from, c.limit); got != c.want {
			t.Errorf("%s from %d, at most %d: %q, want %q", c.pattern, c.from, c.limit, got, c.want)
		}
	}
	d.Must(t, companytest.Board, topic.KindKeep, topic.Keep{Topic: "b", Messages: 1}, nil)
	if got := texts(d, "b", 0, 9); got != "m5" {
		t.Errorf("b keeps %q, want one message", got)
	}
	d.Must(t, companytest.Board, topic.KindKeep, topic.Keep{Topic: "a.x", Bytes: 1}, nil)
	publish("a.x", "m6")
	if got := texts(d, "a.x", 0, 9); got != "" {
		t.Errorf("a.x keeps %q, want nothing: no message has one byte", got)
	}
	d.Must(t, companytest.Board, topic.KindKeep, topic.Keep{Topic: "a.y", Seconds: 60}, nil)
	d.Now = d.Now.Add(time.Minute)
	if got := texts(d, "a.y", 0, 9); got != "" {
		t.Errorf("a.y still shows %q after its time", got)
	}
	publish("a.y", "m7")
	row, _ := topic.Of(d.Tx, d.Company, "a.y")
	if row.Messages != 1 || row.First != heights["m7"] || row.Published != 3 {
		t.Errorf("the old messages stay: %+v", row)
	}
	var sum topic.Total
	for _, row := range topic.List(d.Tx, d.Company, "**") {
		sum.Topics, sum.Messages, sum.Bytes = sum.Topics+1, sum.Messages+row.Messages, sum.Bytes+row.Bytes
	}
	if got := topic.TotalOf(d.Tx, d.Company); got != sum {
		t.Errorf("the total is %+v, want %+v", got, sum)
	}
	if got := topic.TotalOf(d.Tx, ""); got != (topic.Total{}) {
		t.Errorf("the mesh has %+v of a company's", got)
	}
	var gone topic.Deleted
	for _, name := range []string{"a.x", "a.y", "b"} {
		d.Must(t, companytest.Board, topic.KindDelete, topic.Delete{Topic: name}, &gone)
	}
	if got := topic.TotalOf(d.Tx, d.Company); got != (topic.Total{}) || gone.Left != 0 {
		t.Errorf("after all were deleted there is %+v", got)
	}
}

// A subscription remembers its position, which never goes back by an acknowledgement.
func TestSubscriptionsRemember(t *testing.T) {
	t.Parallel()
	d := companytest.NewDesk(t)
	var p topic.Published
	d.Must(t, companytest.Board, topic.KindPublish, topic.Publish{Topic: "a", Text: "old"}, &p)
	var s topic.Subscription
	d.Must(t, companytest.Board, topic.KindSubscribe, topic.Subscribe{Name: "new", Pattern: "a"}, &s)
	if got := texts(d, s.Pattern, s.Position+1, 9); got != "" {
		t.Errorf("a new subscription reads %q", got)
	}
	d.Must(t, companytest.Board, topic.KindSubscribe, topic.Subscribe{Name: "all", Pattern: "a", From: new(uint64)}, &s)
	if got := texts(d, s.Pattern, s.Position+1, 9); got != "old" {
		t.Errorf("a subscription from 0 reads %q", got)
	}
	d.Must(t, companytest.Board, topic.KindAcknowledge, topic.Acknowledge{Name: "all", Height: p.Height}, &s)
	d.Must(t, companytest.Board, topic.KindAcknowledge, topic.Acknowledge{Name: "all", Height: 1}, &s)
	if s.Position != p.Height {
		t.Errorf("the position went back to %d", s.Position)
	}
	d.Must(t, companytest.Board, topic.KindSubscribe, topic.Subscribe{Name: "all", Pattern: "**"}, &s)
	if s.Position != p.Height || s.Pattern != "**" {
		t.Errorf("another pattern changes more: %+v", s)
	}
	d.Must(t, companytest.Board, topic.KindUnsubscribe, topic.Unsubscribe{Name: "all"}, nil)
	companytest.WantRefusal(t, d.Do(companytest.Board, topic.KindAcknowledge, topic.Acknowledge{Name: "all"}, nil),
		ledger.NotFound, "Subscription not found")
	companytest.WantRefusal(t, d.Do(companytest.Board, topic.KindUnsubscribe, topic.Unsubscribe{Name: "all"}, nil),
		ledger.NotFound, "Subscription not found")
}

func TestBadMessages(t *testing.T) {
	t.Parallel()
	d := companytest.NewDesk(t)
	for what, c := range map[string]struct {
		payload any
		code    ledger.Code
		says    string
	}{
		"no name": {topic.Publish{Text: "x"}, ledger.Invalid, "topic: required"},
		"a pattern": {topic.Publish{Topic: "a.*", Text: "x"}, ledger.Invalid,
			`topic: "*": a level has letters, digits, - _ : @ =; a pattern may have * for one level, and ** for all at its end`},
		"too long": {topic.Publish{Topic: "a", Text: strings.Repeat("x", topic.MaxText+1)}, ledger.TooLarge,
			"text: 65537 bytes, at most 65536"},
		"no UTF-8": {topic.Publish{Topic: "a", Text: "\x00"}, ledger.Invalid,
			"text: is not UTF-8, or has a zero byte; encode other bytes, such as in base64"},
		"no JSON": {topic.Publish{Topic: "a", Text: "{", JSON: true}, ledger.Invalid, "json: is not JSON"},
		"a long way": {topic.Publish{Topic: "a", From: strings.Repeat("x", topic.MaxFrom+1)}, ledger.Invalid,
			"from: at most 128 bytes"},
	} {
		t.Run(what, func(t *testing.T) {
			companytest.WantRefusal(t, d.Do(companytest.Board, topic.KindPublish, c.payload, nil), c.code, c.says)
		})
	}
	companytest.WantRefusal(t, d.Do(companytest.Board, topic.KindKeep,
		topic.Keep{Topic: "a", Messages: topic.MostMessages + 1}, nil), ledger.Invalid,
		"messages: 100001, want 1 to 100000, or 0 to leave it")
	d.Must(t, companytest.Board, topic.KindSubscribe, topic.Subscribe{Name: "s", Pattern: "a"}, nil)
	companytest.WantRefusal(t, d.Do(companytest.Board, topic.KindAcknowledge,
		topic.Acknowledge{Name: "s", Height: 1 << 40}, nil), ledger.Invalid,
		"height: 1099511627776 is higher than the chain, which has 9")
	companytest.WantRefusal(t, d.Do(companytest.Board, topic.KindDelete, topic.Delete{Topic: "none"}, nil),
		ledger.NotFound, "Topic not found")
}
