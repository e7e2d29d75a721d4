package plan

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	jsonpatch "gomodules.xyz/jsonpatch/v2"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"sigs.k8s.io/cluster-api/providers/core/topologyplan"
)

// write writes the changed objects below the directory: created objects to created, and the original, the result, and their
// differences to modified. Without a directory, there is nothing to do.
func (o *Options) write(ctx context.Context, changes []topologyplan.Change, out io.Writer) error {
	if o.Directory == "" {
		return nil
	}
	created, modified := filepath.Join(o.Directory, "created"), filepath.Join(o.Directory, "modified")
	for _, dir := range []string{created, modified} {
		if err := os.MkdirAll(dir, 0o750); err != nil {
			return fmt.Errorf("cannot create a directory for the plan: %w", err)
		}
	}
	for _, c := range changes {
		var err error
		switch c.Action {
		case topologyplan.Created:
			err = writeYAML(filepath.Join(created, fileName(c.After)+".yaml"), c.After)
		case topologyplan.Modified:
			err = o.writeModified(ctx, filepath.Join(modified, fileName(c.After)), c)
		case topologyplan.Deleted:
		}
		if err != nil {
			return fmt.Errorf("cannot write %s %s: %w", c.Object().GetKind(), c.Object().GetName(), err)
		}
	}
	fmt.Fprintf(out, "Created objects are written to directory %q\n", created)
	fmt.Fprintf(out, "Modified objects are written to directory %q\n", modified)
	return nil
}

func fileName(u *unstructured.Unstructured) string {
	return strings.Join([]string{u.GetKind(), u.GetNamespace(), u.GetName()}, "_")
}

func writeYAML(path string, u *unstructured.Unstructured) error {
	u = u.DeepCopy()
	u.SetManagedFields(nil)
	raw, err := yaml.Marshal(u.Object)
	if err != nil {
		return err
	}
	return os.WriteFile(path, raw, 0o600)
}

func (o *Options) writeModified(ctx context.Context, path string, c topologyplan.Change) error {
	original, modified := path+".original.yaml", path+".modified.yaml"
	if err := errors.Join(writeYAML(original, c.Before), writeYAML(modified, c.After)); err != nil {
		return err
	}
	patch, err := patchOf(c)
	if err != nil {
		return err
	}
	if err := os.WriteFile(path+".jsonpatch", append(patch, '\n'), 0o600); err != nil {
		return err
	}
	command := strings.Fields(o.DiffCommand)
	diff, err := exec.CommandContext(ctx, command[0], append(command[1:], original, modified)...).Output()
	// Exit code 1 means that the files differ.
	if failed := (*exec.ExitError)(nil); err != nil && !(errors.As(err, &failed) && failed.ExitCode() == 1) {
		return fmt.Errorf("comparing with %q: %w: set the environment variable KUBECTL_EXTERNAL_DIFF to a command that compares two files",
			o.DiffCommand, err)
	}
	return os.WriteFile(path+".diff", diff, 0o600)
}

// patchOf returns the change as a JSON patch.
func patchOf(c topologyplan.Change) ([]byte, error) {
	before, after := c.Before.DeepCopy(), c.After.DeepCopy()
	before.SetManagedFields(nil)
	after.SetManagedFields(nil)
	from, fromErr := before.MarshalJSON()
	to, toErr := after.MarshalJSON()
	if err := errors.Join(fromErr, toErr); err != nil {
		return nil, err
	}
	operations, err := jsonpatch.CreatePatch(from, to)
	if err != nil {
		return nil, err
	}
	return json.MarshalIndent(operations, "", "  ")
}
