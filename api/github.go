package api

import (
	"archive/tar"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"path"
	"regexp"
	"strings"
	"time"

	"github.com/selvage-mesh/selvage/company/portable"
)

// gitHubArchives serves archives of repositories.
const gitHubArchives = "https://codeload.github.com"

// githubTimeout bounds fetching one archive.
const githubTimeout = 30 * time.Second

var (
	githubName = regexp.MustCompile(`^[A-Za-z0-9._-]{1,100}$`)
	PinnedRef  = regexp.MustCompile(`^[0-9a-f]{40}$`)
)

// A repository is a folder of a repository on GitHub at one ref.
type repository struct{ Owner, Name, Ref, Folder string }

// ParseRepository reads https://github.com/OWNER/REPO[/tree/REF[/FOLDER]].
func ParseRepository(address string) (r repository, err error) {
	u, err := url.Parse(address)
	if err != nil || u.Scheme != "https" || u.Host != "github.com" || u.User != nil {
		return r, Unprocessable("source.url must be https://github.com/OWNER/REPO, with /tree/REF/FOLDER after it where "+
			"needed", nil)
	}
	parts := strings.Split(strings.Trim(u.Path, "/"), "/")
	if len(parts) < 2 || len(parts) > 2 && (parts[2] != "tree" || len(parts) < 4) {
		return r, Unprocessable("source.url names no repository, or no ref after /tree", nil)
	}
	r = repository{Owner: parts[0], Name: strings.TrimSuffix(parts[1], ".git"), Ref: "HEAD"}
	if len(parts) > 3 {
		r.Ref, r.Folder = parts[3], path.Join(parts[4:]...)
	}
	if !githubName.MatchString(r.Owner) || !githubName.MatchString(r.Name) || !githubName.MatchString(r.Ref) ||
		strings.HasPrefix(r.Folder, "..") {
		return r, Unprocessable("source.url has a malformed owner, repository or ref", nil)
	}
	return r, nil
}

// FetchRepository reads the files of a repository from GitHub.
func (rc *Request) FetchRepository(r repository) (portable.Files, error) {
	base := rc.Server.Cfg.GitHubArchives
	if base == "" {
		base = gitHubArchives
	}
	ctx, cancel := context.WithTimeout(rc.Context(), githubTimeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, fmt.Sprintf("%s/%s/%s/tar.gz/%s", base, r.Owner, r.Name,
		r.Ref), nil)
	if err != nil {
		return nil, err
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, Unavailable("The repository could not be fetched from GitHub; try again, or send the files inline")
	}
	defer res.Body.Close()
	switch {
	case res.StatusCode == http.StatusNotFound:
		return nil, Unprocessable("GitHub has no such repository or ref, or it is private", nil)
	case res.StatusCode != http.StatusOK:
		return nil, Unavailable(fmt.Sprintf("GitHub answered %d; try again, or send the files inline", res.StatusCode))
	}
	return unpack(io.LimitReader(res.Body, MaxPackage), r.Folder)
}

// unpack reads a .tar.gz whose files are in one top-level folder.
func unpack(r io.Reader, folder string) (portable.Files, error) {
	bad := func(err error) error { return Unprocessable("The archive can not be read: "+err.Error(), nil) }
	z, err := gzip.NewReader(r)
	if err != nil {
		return nil, bad(err)
	}
	files, total := portable.Files{}, int64(0)
	for t := tar.NewReader(io.LimitReader(z, 4*portable.MaxBytes)); ; {
		h, err := t.Next()
		if errors.Is(err, io.EOF) {
			return files, nil
		} else if err != nil {
			return nil, bad(err)
		}
		_, name, ok := strings.Cut(path.Clean(h.Name), "/")
		if !ok || h.Typeflag != tar.TypeReg {
			continue
		}
		if folder != "" {
			if name, ok = strings.CutPrefix(name, folder+"/"); !ok {
				continue
			}
		}
		if total += h.Size; total > portable.MaxBytes || len(files) >= portable.MaxFiles {
			return nil, Unprocessable(fmt.Sprintf("The package is larger than %d MiB or %d files", portable.MaxBytes>>20,
				portable.MaxFiles), nil)
		}
		b, err := io.ReadAll(io.LimitReader(t, h.Size))
		if err != nil {
			return nil, bad(err)
		}
		files[name] = portable.File{Data: b, Binary: strings.HasPrefix(name, "blobs/") || strings.HasPrefix(name, "images/")}
	}
}
