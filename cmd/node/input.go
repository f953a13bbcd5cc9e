package main

import (
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"
)

// readText reads a file of at most limit bytes, the standard input for -.
func readText(cmd *cobra.Command, name string, limit int64) (string, error) {
	in := cmd.InOrStdin()
	if name != "-" {
		f, err := os.Open(name)
		if err != nil {
			return "", err
		}
		defer f.Close()
		in = f
	}
	b, err := io.ReadAll(io.LimitReader(in, limit+1))
	if err == nil && int64(len(b)) > limit {
		err = misuse{fmt.Errorf("%s is longer than %d bytes", name, limit)}
	}
	return string(b), err
}

// textOrFile returns text, or what the file holds that @FILE names (@- is
// standard input), of at most limit bytes.
func textOrFile(cmd *cobra.Command, text string, limit int64) (string, error) {
	if path, isFile := strings.CutPrefix(text, "@"); isFile {
		return readText(cmd, path, limit)
	}
	return text, nil
}
