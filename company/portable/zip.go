package portable

import (
	"archive/zip"
	"errors"
	"io"
	"strings"
	"unicode/utf8"
)

// Unzip reads the files of a package from a zip file of size bytes. It does not trust the
// lengths in the zip's directory: it stops after MaxBytes of decompressed data in all.
func Unzip(r io.ReaderAt, size int64) (Files, error) {
	z, err := zip.NewReader(r, size)
	if err != nil {
		return nil, malformed("it is not a zip file: %v", err)
	}
	files, left := Files{}, int64(MaxBytes)
	for _, f := range z.File {
		if f.FileInfo().IsDir() {
			continue
		}
		if len(files) == MaxFiles {
			return nil, malformed("more than %d files", MaxFiles)
		}
		src, err := f.Open()
		if err != nil {
			return nil, malformed("%q: %v", f.Name, err)
		}
		b, err := io.ReadAll(io.LimitReader(src, left+1))
		if err := errors.Join(err, src.Close()); err != nil {
			return nil, malformed("%q: %v", f.Name, err)
		}
		if left -= int64(len(b)); left < 0 {
			return nil, malformed("more than %d MiB", MaxBytes>>20)
		}
		name := strings.ReplaceAll(f.Name, `\`, "/")
		if _, twice := files[name]; twice {
			return nil, malformed("%q is there twice", f.Name)
		}
		files[name] = File{Data: b, Binary: !utf8.Valid(b)}
	}
	return files, nil
}
