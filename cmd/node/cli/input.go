package cli

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/term"
)

// ReadText reads a file of at most limit bytes; "-" is standard input.
func ReadText(cmd *cobra.Command, name string, limit int64) (string, error) {
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
		err = Misuse(fmt.Errorf("%s is longer than %d bytes", name, limit))
	}
	return string(b), err
}

// TextOrFile returns text, or for @FILE the content of the file (@- is standard input),
// at most limit bytes.
func TextOrFile(cmd *cobra.Command, text string, limit int64) (string, error) {
	if path, isFile := strings.CutPrefix(text, "@"); isFile {
		return ReadText(cmd, path, limit)
	}
	return text, nil
}

// ReadSecret reads a value from standard input, or from a prompt without echo. It
// removes one trailing line break. A secret is never an argument, because every user of
// the machine can see arguments.
func ReadSecret(cmd *cobra.Command) (string, error) {
	var b []byte
	var err error
	if in, ok := cmd.InOrStdin().(*os.File); ok && term.IsTerminal(int(in.Fd())) {
		fmt.Fprint(cmd.ErrOrStderr(), "Value: ")
		b, err = term.ReadPassword(int(in.Fd()))
		fmt.Fprintln(cmd.ErrOrStderr())
	} else {
		b, err = io.ReadAll(io.LimitReader(bufio.NewReader(cmd.InOrStdin()), maxSecret+3))
	}
	if err != nil {
		return "", err
	}
	value := strings.TrimSuffix(strings.TrimSuffix(string(b), "\n"), "\r")
	switch {
	case value == "":
		return "", Misuse(errors.New("the value is empty: give it on standard input"))
	case len(value) > maxSecret:
		return "", Misuse(fmt.Errorf("a value has at most %d bytes", maxSecret))
	}
	return value, nil
}

// maxSecret bounds the value of a secret, in bytes, as the API does.
const maxSecret = 64 << 10

// maxReply bounds a typed line, in bytes.
const maxReply = 1 << 10

// Confirm asks at the terminal before an action that can not be undone. --yes confirms
// it, and is required without a terminal.
func Confirm(cmd *cobra.Command, what string) error {
	if yes, err := cmd.Flags().GetBool("yes"); err != nil || yes {
		return err
	}
	in, ok := cmd.InOrStdin().(*os.File)
	if !ok || !term.IsTerminal(int(in.Fd())) {
		return Misuse(fmt.Errorf("%s? Nobody can be asked, standard input is not a terminal: pass --yes to do it", what))
	}
	fmt.Fprintf(cmd.ErrOrStderr(), "%s? [y/N] ", what)
	line, err := bufio.NewReader(io.LimitReader(in, maxReply)).ReadString('\n')
	switch reply := strings.ToLower(strings.TrimSpace(line)); {
	case reply == "y" || reply == "yes":
		return nil
	case err != nil && !errors.Is(err, io.EOF):
		return err
	}
	return errors.New("nothing was deleted")
}
