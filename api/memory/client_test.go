package memory_test

import (
	"errors"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/selvage-mesh/selvage/api/client"
)

// The Go client adds, finds, reads, explains and forgets memories, and hears of each.
func TestTheGoClientRemembers(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	web := httptest.NewServer(d.Server)
	t.Cleanup(web.Close)
	c, err := client.New(client.Config{Nodes: []string{web.URL}})
	if err != nil {
		t.Fatal(err)
	}
	ctx, of := t.Context(), string(d.of)
	old, err := c.Remember(ctx, client.NewMemory{Company: of, Text: "Globex pays after 40 days", Kind: "fact",
		Tags: []string{"globex"}, Importance: 300})
	if err != nil || old.ID == "" || old.Kind != "fact" || old.Importance != 300 || old.Height == 0 ||
		old.CreatedAt.IsZero() || !old.ExpiresAt.IsZero() {
		t.Fatalf("added %+v, %v", old, err)
	}
	one, err := c.Remember(ctx, client.NewMemory{Company: of, Text: "Globex pays after 40 days, Initech at once",
		Replaces: []string{old.ID}})
	if err != nil || len(one.Replaces) != 1 {
		t.Fatalf("added %+v, %v", one, err)
	}
	found, err := c.Recall(ctx, client.MemorySearch{Company: of, Query: "globex", Limit: 5})
	if err != nil || len(found.Results) != 1 || found.Results[0].Memory.ID != one.ID ||
		found.Results[0].Why.WordRank == nil || found.Considered != 1 || found.Height == 0 {
		t.Errorf("found %+v, %v", found, err)
	}
	if found, err = c.Recall(ctx, client.MemorySearch{Company: of, Query: "globex", Replaced: true}); err != nil ||
		len(found.Results) != 2 {
		t.Errorf("with those that were replaced: %+v, %v", found, err)
	}
	if was, err := c.Memory(ctx, old.ID); err != nil || was.ReplacedBy != one.ID {
		t.Errorf("the old one is %+v, %v", was, err)
	}
	w, err := c.Why(ctx, of, "memory:"+one.ID, 3, 10)
	if err != nil || w.Root != "memory:"+one.ID || len(w.Nodes) < 2 || len(w.Nodes[0].Universal) != 64 ||
		w.Nodes[0].Structure != "index" || len(w.Cross) == 0 {
		t.Errorf("walked %+v, %v", w, err)
	}
	enough := errors.New("enough")
	var heard []string
	err = c.FollowMemories(ctx, of, 0, func(e client.MemoryEvent) error {
		if heard = append(heard, e.Action+" "+e.Memory); len(heard) == 2 {
			return enough
		}
		return nil
	})
	if !errors.Is(err, enough) || strings.Join(heard, ", ") != "memory.added "+old.ID+", memory.added "+one.ID {
		t.Errorf("heard %q, %v", heard, err)
	}
	if err := c.Forget(ctx, one.ID); err != nil {
		t.Error(err)
	}
	if was, err := c.Memory(ctx, old.ID); err != nil || was.ReplacedBy != "" {
		t.Errorf("after the new one is forgotten the old one is %+v, %v", was, err)
	}
	if no, ok := errors.AsType[*client.Error](func() error { _, err := c.Memory(ctx, one.ID); return err }()); !ok ||
		no.Status != 404 {
		t.Errorf("a forgotten memory is answered with %v", no)
	}
}
