package process

import (
	"errors"
	"os"
	"path/filepath"

	"github.com/selvage-mesh/selvage/company"
)

// layOut writes an agent's instructions below the scratch directory of its run,
// which is new and nobody else's, and names them to the run: the folder in
// AGENT_INSTRUCTIONS_DIR, the file to read first in AGENT_INSTRUCTIONS_FILE.
// They go with the scratch.
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
		if err := errors.Join(root.MkdirAll(filepath.Dir(path), 0o700), root.WriteFile(path, []byte(text), 0o600)); err != nil {
			return errors.Join(err, root.Close())
		}
	}
	env["AGENT_INSTRUCTIONS_DIR"] = dir
	if _, ok := in.Texts[in.Entry]; ok {
		env["AGENT_INSTRUCTIONS_FILE"] = filepath.Join(dir, in.Entry)
	}
	return root.Close()
}
