package main

import (
	"archive/tar"
	"bytes"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// nobody is the user of the container: it owns /data and nothing else.
const nobody = 65532

// image makes an OCI image for all Linux targets, from scratch: the program, a
// folder for its data, a folder for what is temporary, and names for two users.
// The first in the index is this machine's platform: some engines take that one.
func (r *release) image() error {
	index := mutate.IndexMediaType(empty.Index, types.OCIImageIndex)
	order := slices.Clone(r.targets)
	slices.SortStableFunc(order, func(a, b target) int {
		own := func(t target) int {
			if t.os == "linux" && t.arch == runtime.GOARCH {
				return 0
			}
			return 1
		}
		return own(a) - own(b)
	})
	n := 0
	for _, t := range order {
		if t.os != "linux" {
			continue
		}
		img, err := r.platform(t)
		if err != nil {
			return err
		}
		p := &v1.Platform{OS: t.os, Architecture: t.arch}
		if t.arm != "" {
			p.Variant = "v" + t.arm
		}
		index = mutate.AppendManifests(index, mutate.IndexAddendum{Add: img, Descriptor: v1.Descriptor{
			Platform: p, Annotations: map[string]string{"org.opencontainers.image.ref.name": "selvage:" + r.version +
				"-" + t.arch},
		}})
		n++
	}
	if n == 0 {
		return nil
	}
	dir, err := os.MkdirTemp(r.out, ".image-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	if _, err := layout.Write(dir, index); err != nil {
		return err
	}
	return r.write("selvage_"+r.version+"_image.tar", func(w io.Writer) error { return r.tarFolder(w, dir) })
}

func (r *release) platform(t target) (v1.Image, error) {
	program, err := os.ReadFile(r.binary[t])
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	notice, err := os.ReadFile(filepath.Join(r.root, "NOTICE"))
	if err != nil {
		return nil, err
	}
	licence, err := os.ReadFile(filepath.Join(r.root, "LICENSE"))
	if err != nil {
		return nil, err
	}
	err = r.tar(&b, []file{
		{name: "LICENSE", mode: 0o644, body: licence},
		{name: "NOTICE", mode: 0o644, body: notice},
		{name: "data", mode: 0o700, dir: true, uid: nobody},
		{name: "etc", mode: 0o755, dir: true},
		{name: "etc/passwd", mode: 0o644, body: []byte("root:x:0:0::/:\nselvage:x:" + strconv.Itoa(nobody) + ":" +
			strconv.Itoa(nobody) + "::/data:\n")},
		{name: "selvage", mode: 0o755, body: program},
		{name: "tmp", mode: 0o1777, dir: true},
	})
	if err != nil {
		return nil, err
	}
	layer, err := tarball.LayerFromOpener(func() (io.ReadCloser,
		error) {
		return io.NopCloser(bytes.NewReader(b.Bytes())), nil
	},
		tarball.WithMediaType(types.OCILayer),
		tarball.WithCompressedCaching) // or it is compressed for its digest and again for the file
	if err != nil {
		return nil, err
	}
	img := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON)
	img, err = mutate.Append(img, mutate.Addendum{Layer: layer, History: v1.History{Created: v1.Time{Time: r.when},
		CreatedBy: "selvage " + r.version}})
	if err != nil {
		return nil, err
	}
	conf, err := img.ConfigFile()
	if err != nil {
		return nil, err
	}
	conf = conf.DeepCopy()
	conf.OS, conf.Architecture, conf.Created = t.os, t.arch, v1.Time{Time: r.when}
	if t.arm != "" {
		conf.Variant = "v" + t.arm
	}
	conf.Config = v1.Config{
		User: strconv.Itoa(nobody), WorkingDir: "/data", Entrypoint: []string{"/selvage"},
		Cmd:     []string{"up", "--dir", "/data"},
		Volumes: map[string]struct{}{"/data": {}}, ExposedPorts: map[string]struct{}{"3100/tcp": {}, "9470/udp": {}},
		Env: []string{"HOME=/data", "TMPDIR=/tmp"}, StopSignal: "SIGTERM",
		Labels: map[string]string{
			"org.opencontainers.image.title": "selvage", "org.opencontainers.image.version": r.version,
			"org.opencontainers.image.licenses": "Apache-2.0",
		},
	}
	return mutate.ConfigFile(img, conf)
}

// tarFolder writes the files of a folder, in the order of their names.
func (r *release) tarFolder(w io.Writer, dir string) error {
	t := tar.NewWriter(w)
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || path == dir {
			return err
		}
		name, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		h := &tar.Header{Name: filepath.ToSlash(name), Mode: 0o644, ModTime: r.when, Typeflag: tar.TypeReg}
		if d.IsDir() {
			h.Name, h.Mode, h.Typeflag = h.Name+"/", 0o755, tar.TypeDir
			return t.WriteHeader(h)
		}
		body, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		h.Size = int64(len(body))
		if err := t.WriteHeader(h); err != nil {
			return err
		}
		_, err = t.Write(body)
		return err
	})
	if err != nil {
		return err
	}
	return t.Close()
}
