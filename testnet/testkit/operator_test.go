package testkit

import (
	"bytes"
	"context"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/selvage-mesh/selvage/api/client"
	"github.com/selvage-mesh/selvage/identity"
	"github.com/selvage-mesh/selvage/node"
)

// What operators do, through the Go client and on three nodes.
func TestOperatorsByTheGoClient(t *testing.T) {
	t.Parallel()
	b := Mesh(t, 3)
	urls := []string{}
	for _, n := range b.Nodes {
		urls = append(urls, n.HTTPURL())
	}
	c, err := client.New(client.Config{Nodes: urls, Read: "strong"})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), settle)
	defer cancel()

	mesh, err := c.Mesh(ctx)
	if err != nil || mesh.Name != "testkit" || mesh.Voters != 3 || mesh.Members != 3 || !mesh.Quorum ||
		mesh.Warning != "" {
		t.Fatalf("mesh %+v, %v", mesh, err)
	}
	named := func(name string) (m client.Member) {
		t.Helper()
		all, err := c.Members(ctx)
		if err != nil {
			t.Fatal(err)
		}
		i := slices.IndexFunc(all, func(m client.Member) bool { return m.Name == name })
		if i < 0 {
			t.Fatalf("no member %s in %+v", name, all)
		}
		return all[i]
	}
	n3 := named("n3")
	if n3.Status != "alive" || !n3.Voter || n3.Version != "testkit" || n3.AdmittedAt.IsZero() || !n3.RevokedAt.IsZero() {
		t.Errorf("n3 is %+v", n3)
	}
	if checks, err := c.Doctor(ctx); err != nil || !slices.ContainsFunc(checks, func(k client.Check) bool {
		return k.Name == "versions" && k.Level == "ok" && k.Found == "all run testkit"
	}) {
		t.Errorf("doctor %+v, %v", checks, err)
	}
	if _, err := c.Logs(ctx, 0, 10); err != nil {
		t.Errorf("logs: %v", err)
	}
	if s, err := c.Stacks(ctx); err != nil || !strings.Contains(s, "goroutine profile") {
		t.Errorf("stacks %.40q, %v", s, err)
	}

	// Who votes and who leads.
	attic := "attic"
	if m, err := c.Label(ctx, n3.ID, map[string]*string{"zone": &attic}); err != nil || !slices.Contains(m.Labels,
		"zone=attic") {
		t.Errorf("labelled %+v, %v", m, err)
	}
	b.Until("the autopilot sees the zone", func() bool {
		a, err := c.Autopilot(ctx)
		return err == nil && a.Tolerance == 1 && a.Names[n3.ID] == "n3" && slices.ContainsFunc(a.Servers,
			func(s client.Seat) bool { return s.Node == n3.ID && s.Zone == "attic" })
	})
	if m, err := c.Label(ctx, n3.ID, map[string]*string{"zone": nil}); err != nil || len(m.Labels) != 0 {
		t.Errorf("the label stays: %+v, %v", m, err)
	}
	before := mesh.Leader
	if _, err := c.TransferLeadership(ctx); err != nil {
		t.Errorf("transfer: %v", err)
	}
	b.Until("another leads", func() bool {
		m, err := c.Mesh(ctx)
		return err == nil && m.Leader != "" &&
			m.Leader != before
	})
	if m, err := c.SetRole(ctx, n3.ID, "observer"); err != nil || m.Role != "observer" {
		t.Errorf("role %+v, %v", m, err)
	}
	b.Until("an observer does not vote", func() bool { m, err := c.Mesh(ctx); return err == nil && m.Voters < 3 })
	if m, err := c.SetRole(ctx, n3.ID, "auto"); err != nil || m.Role != "" {
		t.Errorf("role %+v, %v", m, err)
	}
	b.Until("it votes again", func() bool { m, err := c.Mesh(ctx); return err == nil && m.Voters == 3 })
	if _, err := c.SetRole(ctx, n3.ID, "emperor"); err == nil {
		t.Error("a role that there is not was taken")
	}
	if m, err := c.Mesh(ctx); err == nil && m.Leader != n3.ID {
		if _, err := c.Unseat(ctx, n3.ID); err != nil {
			t.Errorf("unseat: %v", err)
		}
		b.Until("it asked in again", func() bool { m, err := c.Mesh(ctx); return err == nil && m.Voters == 3 })
	}

	// Runs go elsewhere.
	if m, err := c.Cordon(ctx, n3.ID, "dust"); err != nil || m.Scheduling != "cordoned" || m.SchedulingReason != "dust" {
		t.Errorf("cordoned %+v, %v", m, err)
	}
	if m, err := c.Drain(ctx, n3.ID, "new disk"); err != nil || m.Scheduling != "draining" {
		t.Errorf("drained %+v, %v", m, err)
	}
	if m, err := c.Uncordon(ctx, n3.ID); err != nil || m.Scheduling != "open" {
		t.Errorf("uncordoned %+v, %v", m, err)
	}

	// Ways in.
	token, err := c.CreateToken(ctx, 2, time.Hour)
	if err != nil || !strings.HasPrefix(token, "selvage-") {
		t.Errorf("token %.10q, %v", token, err)
	}
	owner, err := c.AddOwnerKey(ctx, "", "home")
	if err != nil || !strings.HasPrefix(owner, "selvage-") {
		t.Errorf("owner key %.10q, %v", owner, err)
	}
	tokens, err := c.Tokens(ctx)
	if err != nil || !slices.ContainsFunc(tokens, func(k client.JoinToken) bool {
		return k.Uses == 2 && k.Usable &&
			!k.Owner
	}) ||
		!slices.ContainsFunc(tokens, func(k client.JoinToken) bool { return k.Owner && k.Note == "home" }) {
		t.Fatalf("tokens %+v, %v", tokens, err)
	}
	for _, k := range tokens {
		if gone, err := c.RevokeToken(ctx, k.ID); err != nil || gone.Usable || gone.RevokedAt.IsZero() {
			t.Errorf("revoked %+v, %v", gone, err)
		}
	}
	if waiting, err := c.JoinRequests(ctx); err != nil || len(waiting) != 0 {
		t.Errorf("requests %+v, %v", waiting, err)
	}
	for _, no := range []error{func() error { _, err := c.Approve(ctx, "AAA-AAA"); return err }(),
		c.Reject(ctx, "AAA-AAA")} {
		if refused, ok := errors.AsType[*client.Error](no); !ok || refused.Status != 404 {
			t.Errorf("a code that nobody shows: %v", no)
		}
	}
	keys, err := c.MeshKeys(ctx)
	if err != nil || keys.Epoch == 0 {
		t.Errorf("keys %+v, %v", keys, err)
	}
	b.Until("the keys are rotated", func() bool {
		now, err := c.RotateKeys(ctx)
		return err == nil && now.Epoch > keys.Epoch
	})

	// What there is, and a backup of it.
	if v, err := c.VerifyLedger(ctx); err != nil || !v.OK || v.Height == 0 {
		t.Errorf("verified %+v, %v", v, err)
	}
	if head, err := c.Ledger(ctx); err != nil || head.Height == 0 || len(head.Digest) != 64 {
		t.Errorf("ledger %+v, %v", head, err)
	}
	k := identity.NewRecipientKey()
	var backup bytes.Buffer
	if n, err := c.Snapshot(ctx, &backup, client.Snapshot{Recipients: []string{identity.FormatRecipient(k.PublicKey())},
		Files: true}); err != nil || n != int64(backup.Len()) {
		t.Fatalf("backup of %d bytes: %v", n, err)
	}
	f, err := identity.ReadSealedFile(&backup)
	if err != nil {
		t.Fatal(err)
	}
	content, err := f.Open(nil, k)
	if err != nil {
		t.Fatal(err)
	}
	if v, err := node.Inspect(content); err != nil || v.About.Name != "testkit" {
		t.Errorf("inspected %+v, %v", v, err)
	}
	if _, err := c.Snapshot(ctx, io.Discard, client.Snapshot{}); err == nil {
		t.Error("a backup for nobody was made")
	}

	// One is thrown out, one leaves.
	if out, err := c.Revoke(ctx, n3.ID, "stolen"); err != nil || out.Status != "revoked" || out.RevokedAt.IsZero() {
		t.Errorf("revoked %+v, %v", out, err)
	}
	b.dead[b.Nodes[2]] = true // it stops by itself
	if m, err := c.Mesh(ctx); err != nil || m.Members != 2 {
		t.Errorf("mesh %+v, %v", m, err)
	}
}
