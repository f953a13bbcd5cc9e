package file_test

import (
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/selvage-mesh/selvage/company"
	"github.com/selvage-mesh/selvage/company/companytest"
	"github.com/selvage-mesh/selvage/company/core"
	"github.com/selvage-mesh/selvage/company/entity"
	"github.com/selvage-mesh/selvage/company/file"
	"github.com/selvage-mesh/selvage/ledger"
)

func TestACommentTakesAttachmentsOfItsIssue(t *testing.T) {
	t.Parallel()
	d := companytest.NewDesk(t)
	i, other := d.Issue(t, company.CreateIssue{}), d.Issue(t, company.CreateIssue{})
	loose, foreign := d.Attach(t, companytest.Board, i.ID, "one").Attachment.ID, d.Attach(t, companytest.Board, other.ID,
		"two").Attachment.ID
	say := func(ids ...string) error {
		return d.Do(companytest.Board, "comment.create", entity.CreateComment{ID: d.ID(), Issue: i.ID, Body: "see",
			Attachments: ids}, nil)
	}
	companytest.WantRefusal(t, say(loose, foreign), ledger.NotFound, "Attachment not found")
	companytest.WantRefusal(t, say(d.ID()), ledger.NotFound, "Attachment not found")
	if at, _ := file.Attachments.Get(d.Tx, d.Company, loose); at.Comment != "" || d.Load(i.ID).Comments != 0 {
		t.Errorf("a comment that was refused has %q", at.Comment)
	}
	with := entity.CreateComment{ID: d.ID(), Issue: i.ID, Body: "see", Attachments: []string{loose, loose}}
	d.Must(t, companytest.Board, "comment.create", with, nil)
	if at, _ := file.Attachments.Get(d.Tx, d.Company, loose); string(at.Comment) != with.ID {
		t.Errorf("the attachment is of comment %q, want %s", at.Comment, with.ID)
	}
	companytest.WantRefusal(t, say(loose), ledger.Conflict, "The attachment belongs to another comment")
}

func TestAttachmentsAndWhoMayTouchThem(t *testing.T) {
	t.Parallel()
	d := companytest.NewDesk(t)
	ada, bob := d.Agent("Ada"), d.Agent("Bob")
	asAda, asBob := companytest.As{Agent: ada, Run: d.Run(ada)}, companytest.As{Agent: bob, Run: d.Run(bob)}
	i := d.Issue(t, company.CreateIssue{})
	mine := d.Attach(t, asAda, i.ID, "one")
	if mine.Asset.CreatedAgent != core.NullText(ada) || mine.Asset.CreatedUser != "" ||
		mine.Attachment.Run != core.NullText(asAda.Run) {
		t.Errorf("added by %+v", mine)
	}
	if want := string(d.Company) + "/issues/" + i.ID + "/2026/11/21/"; !strings.HasPrefix(mine.Asset.ObjectKey, want) ||
		!strings.HasSuffix(mine.Asset.ObjectKey, "-a_b.txt") {
		t.Errorf("lies at %s", mine.Asset.ObjectKey)
	}
	companytest.WantRefusal(t, d.Do(companytest.As{Agent: ada, Run: ""}, "attachment.create",
		file.CreateAttachment{Issue: i.ID, ID: d.ID(), File: d.File("x")}, nil), ledger.Forbidden,
		"An agent writes on issues under a run of its own that is still going on; this request named none.")
	companytest.WantRefusal(t, d.Do(asBob, "attachment.delete", file.DeleteAttachment{ID: mine.Attachment.ID}, nil),
		ledger.Forbidden, "Only the board or the agent that added an attachment can delete it")
	companytest.WantRefusal(t, d.Do(companytest.Board, "attachment.delete", file.DeleteAttachment{ID: d.ID()}, nil),
		ledger.NotFound, "Attachment not found")
	big := d.File("big")
	big.Size = company.DefaultAttachmentBytes + 1
	companytest.WantRefusal(t, d.Do(companytest.Board, "attachment.create", file.CreateAttachment{Issue: i.ID, ID: d.ID(),
		File: big}, nil), ledger.TooLarge, "Attachment exceeds 10485760 bytes")
	for name, spoil := range map[string]func(*company.NewFile){
		"a hash that is none":   func(f *company.NewFile) { f.SHA256 = "abc" },
		"a name with a folder":  func(f *company.NewFile) { f.Name = "../x" },
		"a name with a newline": func(f *company.NewFile) { f.Name = "a\nb" },
		"a long name":           func(f *company.NewFile) { f.Name = strings.Repeat("x", file.MaxFilename+1) },
		"no type":               func(f *company.NewFile) { f.ContentType = "" },
		"a negative size":       func(f *company.NewFile) { f.Size = -1 },
		"many nodes":            func(f *company.NewFile) { f.Nodes = make([]string, company.MaxBlobNodes+1) },
		"an ID in use":          func(f *company.NewFile) { f.ID = mine.Asset.ID },
	} {
		f := d.File("y")
		spoil(&f)
		if err := d.Do(companytest.Board, "attachment.create", file.CreateAttachment{Issue: i.ID, ID: d.ID(), File: f},
			nil); err == nil {
			t.Errorf("%s was taken", name)
		}
	}
	if got := file.AttachmentsOf(d.Tx, i); len(got) != 1 || got[0].Attachment.ID != mine.Attachment.ID {
		t.Errorf("the issue has %+v", got)
	}
	d.Must(t, asAda, "attachment.delete", file.DeleteAttachment{ID: mine.Attachment.ID}, nil)
	if refs := d.Refs(); len(refs) != 0 || string(core.OwnerOf(d.Tx, mine.Asset.ID))+string(core.OwnerOf(d.Tx,
		mine.Attachment.ID)) != "" {
		t.Errorf("left behind: %v", refs)
	}
}

func TestNamespacesOfAssets(t *testing.T) {
	t.Parallel()
	d := companytest.NewDesk(t)
	for space, ok := range map[string]bool{"": true, "general": true, "a/b_c-D9": true, "/a": false, "a//b": false,
		"..": false, "ä": false, strings.Repeat("x", 121): false} {
		var a file.Asset
		if err := d.Do(companytest.Board, "asset.create", file.CreateAsset{File: d.File("x"), Namespace: space},
			&a); (err == nil) != ok {
			t.Errorf("%q: %v", space, err)
		} else if ok && !strings.HasPrefix(a.ObjectKey, string(d.Company)+"/assets/") {
			t.Errorf("%q lies at %s", space, a.ObjectKey)
		}
	}
}

// An issue with the most attachments it may have is deleted by one command. Its attachments
// are hidden at once and deleted in parts.
func TestAttachmentsOfADeletedIssueAreSwept(t *testing.T) {
	t.Parallel()
	d := companytest.NewDesk(t)
	i, other := d.Issue(t, company.CreateIssue{}), d.Issue(t, company.CreateIssue{})
	var last file.Attached
	for n := range file.MaxAttachments {
		last = d.Attach(t, companytest.Board, i.ID, fmt.Sprint(n))
	}
	companytest.WantRefusal(t, d.Do(companytest.Board, "attachment.create", file.CreateAttachment{Issue: i.ID, ID: d.ID(),
		File: d.File("one more")}, nil), ledger.Unprocessable, "An issue can have at most 500 attachments")
	kept := d.Attach(t, companytest.Board, other.ID, "7")
	d.Must(t, companytest.Board, "issue.delete", company.DeleteIssue{Issue: i.ID}, nil)
	if _, ok := file.AttachmentByID(d.Tx, last.Attachment.ID); ok {
		t.Error("an attachment of a deleted issue is shown")
	}
	rounds := 0
	for ; file.AttachmentsToSweep(d.Tx, d.Company); rounds++ {
		c := d.Context(companytest.Board, "attachment.sweep", file.SweepAttachments{})
		c.Tx = d.Tx.Child()
		if _, err := file.HandleSweepAttachments(c, file.SweepAttachments{}); err != nil {
			t.Fatal(err)
		}
		if n := c.Touched(); n > ledger.MaxTouched {
			t.Fatalf("a sweep touches %d keys", n)
		}
		c.Tx.Merge()
		if rounds > file.MaxAttachments {
			t.Fatal("the sweep does not end")
		}
	}
	if refs := d.Refs(); len(refs) != 1 || refs[kept.Asset.SHA256] != 1 {
		t.Errorf("after %d sweeps %v are referred to, want only %s", rounds, refs, kept.Asset.SHA256)
	}
}

// After any sequence of additions and deletions, the reference count of a blob equals the
// number of assets with its hash.
func TestReferencesCountAssets(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		d := companytest.NewDesk(t)
		i := d.Issue(t, company.CreateIssue{})
		want := map[string]uint32{}
		var live []file.Attached
		for range rapid.IntRange(1, 40).Draw(rt, "steps") {
			if n := len(live); n > 0 && rapid.Bool().Draw(rt, "remove") {
				at := rapid.IntRange(0, n-1).Draw(rt, "which")
				d.Must(t, companytest.Board, "attachment.delete", file.DeleteAttachment{ID: live[at].Attachment.ID}, nil)
				if want[live[at].Asset.SHA256]--; want[live[at].Asset.SHA256] == 0 {
					delete(want, live[at].Asset.SHA256)
				}
				live = append(live[:at:at], live[at+1:]...)
				continue
			}
			at := d.Attach(t, companytest.Board, i.ID, rapid.SampledFrom([]string{"a", "b", "c"}).Draw(rt, "content"))
			want[at.Asset.SHA256]++
			live = append(live, at)
		}
		if got := d.Refs(); fmt.Sprint(got) != fmt.Sprint(want) {
			rt.Fatalf("refers to %v, want %v", got, want)
		}
	})
}
