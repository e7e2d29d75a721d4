package command

import (
	"bytes"
	"path/filepath"
	"strings"
	"testing"
)

func TestMissingBackupDirectoryIsReported(t *testing.T) {
	present := t.TempDir()
	for _, test := range []struct{ reason, folder, want string }{
		{"no backups are saved", "", ""},
		{"the directory exists", present, ""},
		{"a typo, or a volume that is not mounted", filepath.Join(present, "absent"), "Warning: no backups can be saved: --backup-dir: "},
	} {
		out := &bytes.Buffer{}
		(&scheduleOptions{folder: test.folder}).warn(out)
		if got := out.String(); !strings.HasPrefix(got, test.want) || (got == "") != (test.want == "") {
			t.Errorf("%s: got %q, want %q", test.reason, got, test.want)
		}
	}
}
