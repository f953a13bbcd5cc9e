package testkit

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"mime/multipart"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/selvage-mesh/selvage/node"
)

// form is a multipart form with one file, and its content type.
func form(t *testing.T, name string, content []byte) (body []byte, contentType string) {
	t.Helper()
	var b bytes.Buffer
	w := multipart.NewWriter(&b)
	part, err := w.CreateFormFile("file", name)
	if err != nil {
		t.Fatal(err)
	}
	part.Write(content)
	w.Close()
	return b.Bytes(), w.FormDataContentType()
}

type attachment struct {
	ID, SHA256 string
	ByteSize   int64
	Copies     struct{ Synced, Wanted int }
}

// An attachment that one node took is read, whole and in ranges, through all of
// them; when that node dies for good the others still have it, and make up the
// copy that is lost; and a file that rots on a disk is replaced.
func TestAttachmentOutlivesItsNode(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	b := Mesh(t, 5, func(i int, c *node.Config) {
		c.Dir = filepath.Join(dir, c.Name)
		c.Blobs = node.Blobs{Every: 100 * time.Millisecond, Gone: time.Second, Grace: time.Hour}
		c.Blobs.Store.Reserve = 1
	})
	of := b.Company("Acme")
	issue := b.Issue(1, of, "Keep this")
	want := bytes.Repeat([]byte("0123456789abcdef"), 64<<10) // 1 MiB
	body, contentType := form(t, "würfel.bin", want)
	var at attachment
	b.Must(1, "POST", "/api/companies/"+string(of)+"/issues/"+issue+"/attachments", body, &at, "Content-Type", contentType,
		"X-Selvage-Read", "strong")
	sum := sha256.Sum256(want)
	if at.SHA256 != hex.EncodeToString(sum[:]) || at.ByteSize != int64(len(want)) || at.Copies.Synced < 2 ||
		at.Copies.Wanted != 3 {
		t.Errorf("uploaded as %+v", at)
	}
	path := "/api/attachments/" + at.ID + "/content"
	readable := func(on int) {
		t.Helper()
		got := b.Must(on, "GET", path, nil, nil, b.Seen()...)
		if !bytes.Equal(got.Body, want) {
			t.Errorf("n%d gives %d bytes, not the file", on+1, len(got.Body))
		}
		part := b.Must(on, "GET", path, nil, nil, append(b.Seen(), "Range", "bytes=524285-524300")...)
		if part.Status != 206 || !bytes.Equal(part.Body, want[524285:524301]) ||
			part.Header.Get("Content-Range") != fmt.Sprintf("bytes 524285-524300/%d", len(want)) {
			t.Errorf("n%d gives the range as %d %q %q", on+1, part.Status, part.Body, part.Header.Get("Content-Range"))
		}
		if same, err := b.Call(on, "GET", path, nil, nil, "If-None-Match", got.Header.Get("ETag")); err != nil ||
			same.Status != 304 {
			t.Errorf("n%d answers %d to the ETag that it gave, %v", on+1, same.Status, err)
		}
	}
	for on := range b.Nodes {
		readable(on)
	}
	file := func(on int) string {
		return filepath.Join(dir, fmt.Sprintf("n%d", on+1), "blobs", at.SHA256[:2], at.SHA256)
	}
	held := func(nodes ...int) (n int) {
		for _, on := range nodes {
			if got, err := os.ReadFile(file(on)); err == nil && bytes.Equal(got, want) {
				n++
			}
		}
		return n
	}
	b.Until("three nodes have the file", func() bool { return held(0, 1, 2, 3, 4) >= 3 })

	// The node that took it dies, as if its power and disk were gone.
	b.Kill(1)
	if err := os.RemoveAll(filepath.Dir(filepath.Dir(file(1)))); err != nil {
		t.Fatal(err)
	}
	for _, on := range []int{0, 2, 3, 4} {
		readable(on)
	}
	b.Until("three of the four that are left have the file", func() bool { return held(0, 2, 3, 4) >= 3 })

	// A disk flips a bit; the node is started again and finds out.
	rotten := 2
	if held(rotten) == 0 {
		rotten = 3 // one of the two has it
	}
	if err := os.WriteFile(file(rotten), append([]byte("X"), want[1:]...), 0o600); err != nil {
		t.Fatal(err)
	}
	b.Restart(rotten)
	readable(rotten)
	b.Until("the rotten file is replaced", func() bool { return held(rotten) == 1 })
}

// What the last row refers to no more is thrown away on all nodes.
func TestDeletedAttachmentsLeaveTheDisks(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	b := Mesh(t, 3, func(i int, c *node.Config) {
		c.Dir = filepath.Join(dir, c.Name)
		c.Blobs = node.Blobs{Every: 100 * time.Millisecond, Grace: 3 * time.Second}
		c.Blobs.Store.Reserve = 1
	})
	of := b.Company("Acme")
	first, second := b.Issue(0, of, "First"), b.Issue(0, of, "Second")
	body, contentType := form(t, "same.txt", []byte("the same in both"))
	var ids, sums []string
	for _, issue := range []string{first, second} {
		var at attachment
		b.Must(0, "POST", "/api/companies/"+string(of)+"/issues/"+issue+"/attachments", body, &at, "Content-Type",
			contentType)
		ids, sums = append(ids, at.ID), append(sums, at.SHA256)
	}
	files := func() (n int) {
		for _, name := range []string{"n1", "n2", "n3"} {
			if _, err := os.Stat(filepath.Join(dir, name, "blobs", sums[0][:2], sums[0])); err == nil {
				n++
			}
		}
		return n
	}
	b.Until("all nodes have the file", func() bool { return files() == 3 })
	b.Must(1, "DELETE", "/api/attachments/"+ids[0], nil, nil, Strong...)
	b.Must(1, "GET", "/api/attachments/"+ids[1]+"/content", nil, nil, Strong...)
	b.Must(0, "DELETE", "/api/issues/"+second, nil, nil, Strong...)
	if got, err := b.Ask(1, "GET", "/api/attachments/"+ids[1]+"/content", nil, nil, b.Seen()...); err != nil ||
		got.Status != 404 {
		t.Errorf("an attachment of a deleted issue: %d, %v", got.Status, err)
	}
	b.Until("no node has the file", func() bool { return files() == 0 })
}
