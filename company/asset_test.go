package company

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/selvage-mesh/selvage/ledger"
)

func (d *desk) file(content string) NewFile {
	sum := sha256.Sum256([]byte(content))
	return NewFile{ID: d.id(), Object: d.id(), Name: "a b.txt", ContentType: "text/plain", Size: int64(len(content)), SHA256: hex.EncodeToString(sum[:]), Nodes: []string{"n1"}}
}

func (d *desk) attach(t testing.TB, who as, issue, content string) (at Attached) {
	t.Helper()
	d.must(t, who, "attachment.create", CreateAttachment{Issue: issue, ID: d.id(), File: d.file(content)}, &at)
	return at
}

func (d *desk) refs() map[string]uint32 {
	out := map[string]uint32{}
	for sha256, r := range Blobs(d.tx) {
		out[sha256] += r.Refs
	}
	return out
}

func TestACommentTakesAttachmentsOfItsIssue(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	i, other := d.issue(t, CreateIssue{}), d.issue(t, CreateIssue{})
	loose, foreign := d.attach(t, board, i.ID, "one").Attachment.ID, d.attach(t, board, other.ID, "two").Attachment.ID
	say := func(ids ...string) error {
		return d.do(board, "comment.create", CreateComment{ID: d.id(), Issue: i.ID, Body: "see", Attachments: ids}, nil)
	}
	wantRefusal(t, say(loose, foreign), ledger.NotFound, "Attachment not found")
	wantRefusal(t, say(d.id()), ledger.NotFound, "Attachment not found")
	if at, _ := attachments.Get(d.tx, d.company, loose); at.Comment != "" || d.load(i.ID).Comments != 0 {
		t.Errorf("a comment that was refused has %q", at.Comment)
	}
	with := CreateComment{ID: d.id(), Issue: i.ID, Body: "see", Attachments: []string{loose, loose}}
	d.must(t, board, "comment.create", with, nil)
	if at, _ := attachments.Get(d.tx, d.company, loose); string(at.Comment) != with.ID {
		t.Errorf("the attachment is of comment %q, want %s", at.Comment, with.ID)
	}
	wantRefusal(t, say(loose), ledger.Conflict, "The attachment belongs to another comment")
}

func TestAttachmentsAndWhoMayTouchThem(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	ada, bob := d.agent("Ada"), d.agent("Bob")
	asAda, asBob := as{ada, d.run(ada)}, as{bob, d.run(bob)}
	i := d.issue(t, CreateIssue{})
	mine := d.attach(t, asAda, i.ID, "one")
	if mine.Asset.CreatedAgent != NullText(ada) || mine.Asset.CreatedUser != "" || mine.Attachment.Run != NullText(asAda.run) {
		t.Errorf("added by %+v", mine)
	}
	if want := d.company + "/issues/" + i.ID + "/2026/11/21/"; !strings.HasPrefix(mine.Asset.ObjectKey, want) || !strings.HasSuffix(mine.Asset.ObjectKey, "-a_b.txt") {
		t.Errorf("lies at %s", mine.Asset.ObjectKey)
	}
	wantRefusal(t, d.do(as{ada, ""}, "attachment.create", CreateAttachment{Issue: i.ID, ID: d.id(), File: d.file("x")}, nil), ledger.Forbidden, "")
	wantRefusal(t, d.do(asBob, "attachment.delete", DeleteAttachment{ID: mine.Attachment.ID}, nil), ledger.Forbidden, "")
	wantRefusal(t, d.do(board, "attachment.delete", DeleteAttachment{ID: d.id()}, nil), ledger.NotFound, "")
	big := d.file("big")
	big.Size = DefaultAttachmentBytes + 1
	wantRefusal(t, d.do(board, "attachment.create", CreateAttachment{Issue: i.ID, ID: d.id(), File: big}, nil), ledger.TooLarge, "")
	for name, spoil := range map[string]func(*NewFile){
		"a hash that is none":   func(f *NewFile) { f.SHA256 = "abc" },
		"a name with a folder":  func(f *NewFile) { f.Name = "../x" },
		"a name with a newline": func(f *NewFile) { f.Name = "a\nb" },
		"a long name":           func(f *NewFile) { f.Name = strings.Repeat("x", MaxFilename+1) },
		"no type":               func(f *NewFile) { f.ContentType = "" },
		"a negative size":       func(f *NewFile) { f.Size = -1 },
		"many nodes":            func(f *NewFile) { f.Nodes = make([]string, MaxBlobNodes+1) },
		"an ID in use":          func(f *NewFile) { f.ID = mine.Asset.ID },
	} {
		f := d.file("y")
		spoil(&f)
		if err := d.do(board, "attachment.create", CreateAttachment{Issue: i.ID, ID: d.id(), File: f}, nil); err == nil {
			t.Errorf("%s was taken", name)
		}
	}
	if got := AttachmentsOf(d.tx, i); len(got) != 1 || got[0].Attachment.ID != mine.Attachment.ID {
		t.Errorf("the issue has %+v", got)
	}
	d.must(t, asAda, "attachment.delete", DeleteAttachment{ID: mine.Attachment.ID}, nil)
	if refs := d.refs(); len(refs) != 0 || OwnerOf(d.tx, mine.Asset.ID)+OwnerOf(d.tx, mine.Attachment.ID) != "" {
		t.Errorf("left behind: %v", refs)
	}
}

func TestNamespacesOfAssets(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	for space, ok := range map[string]bool{"": true, "general": true, "a/b_c-D9": true, "/a": false, "a//b": false, "..": false, "ä": false, strings.Repeat("x", 121): false} {
		var a Asset
		if err := d.do(board, "asset.create", CreateAsset{File: d.file("x"), Namespace: space}, &a); (err == nil) != ok {
			t.Errorf("%q: %v", space, err)
		} else if ok && !strings.HasPrefix(a.ObjectKey, d.company+"/assets/") {
			t.Errorf("%q lies at %s", space, a.ObjectKey)
		}
	}
}

// An issue with as many attachments as it may have is deleted at once; what it
// had is hidden, and removed a part at a time.
func TestAttachmentsOfADeletedIssueAreSwept(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	i, other := d.issue(t, CreateIssue{}), d.issue(t, CreateIssue{})
	var last Attached
	for n := range MaxAttachments {
		last = d.attach(t, board, i.ID, fmt.Sprint(n))
	}
	wantRefusal(t, d.do(board, "attachment.create", CreateAttachment{Issue: i.ID, ID: d.id(), File: d.file("one more")}, nil), ledger.Unprocessable, "")
	kept := d.attach(t, board, other.ID, "7")
	d.must(t, board, "issue.delete", DeleteIssue{Issue: i.ID}, nil)
	if _, ok := AttachmentByID(d.tx, last.Attachment.ID); ok {
		t.Error("an attachment of a deleted issue is shown")
	}
	rounds := 0
	for ; AttachmentsToSweep(d.tx, d.company); rounds++ {
		c := d.context(board, "attachment.sweep", SweepAttachments{})
		c.Tx = d.tx.Child()
		if _, err := sweepAttachments(c, SweepAttachments{}); err != nil {
			t.Fatal(err)
		}
		if n := c.Touched(); n > ledger.MaxTouched {
			t.Fatalf("a sweep touches %d keys", n)
		}
		c.Tx.Merge()
		if rounds > MaxAttachments {
			t.Fatal("the sweep does not end")
		}
	}
	if refs := d.refs(); len(refs) != 1 || refs[kept.Asset.SHA256] != 1 {
		t.Errorf("after %d sweeps %v are referred to, want only %s", rounds, refs, kept.Asset.SHA256)
	}
}

// Whatever is added and removed, in whatever order, a blob is referred to as
// often as there are assets with its hash.
func TestReferencesCountAssets(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		d := newDesk(t)
		i := d.issue(t, CreateIssue{})
		want := map[string]uint32{}
		var live []Attached
		for range rapid.IntRange(1, 40).Draw(rt, "steps") {
			if n := len(live); n > 0 && rapid.Bool().Draw(rt, "remove") {
				at := rapid.IntRange(0, n-1).Draw(rt, "which")
				d.must(t, board, "attachment.delete", DeleteAttachment{ID: live[at].Attachment.ID}, nil)
				if want[live[at].Asset.SHA256]--; want[live[at].Asset.SHA256] == 0 {
					delete(want, live[at].Asset.SHA256)
				}
				live = append(live[:at:at], live[at+1:]...)
				continue
			}
			at := d.attach(t, board, i.ID, rapid.SampledFrom([]string{"a", "b", "c"}).Draw(rt, "content"))
			want[at.Asset.SHA256]++
			live = append(live, at)
		}
		if got := d.refs(); fmt.Sprint(got) != fmt.Sprint(want) {
			rt.Fatalf("refers to %v, want %v", got, want)
		}
	})
}
