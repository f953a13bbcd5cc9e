package process

import (
	"errors"
	"os"
	"path/filepath"

	"github.com/selvage-mesh/selvage/company"
)

// layOut writes an agent's instructions below the scratch directory of its run, and sets two
// variables: AGENT_INSTRUCTIONS_DIR is the folder, AGENT_INSTRUCTIONS_FILE the file to read
// first. The files are deleted with the scratch directory.
func layOut(in *company.RunInstructions, scratch string, env map[string]string) error {
	if in == nil {
		return nil
	}
	dir := filepath.Join(scratch, "instructions")
	if err := os.Mkdir(dir, 0o700); err != nil {
		return err
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	for path, text := range in.Texts {
		if err := errors.Join(root.MkdirAll(filepath.Dir(path), 0o700), root.WriteFile(path, []byte(text),
			0o600)); err != nil {
			return errors.Join(err, root.Close())
		}
	}
	env["AGENT_INSTRUCTIONS_DIR"] = dir
	if _, ok := in.Texts[in.Entry]; ok {
		env["AGENT_INSTRUCTIONS_FILE"] = filepath.Join(dir, in.Entry)
	}
	return root.Close()
}
