package command

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/adrg/xdg"
	"github.com/spf13/cobra"

	"sigs.k8s.io/cluster-api/standalone/internal/backup"
	"sigs.k8s.io/cluster-api/standalone/internal/controlplane"
)

// shownClusters is how many names of Clusters a restore prints.
const shownClusters = 10

// restoreOptions are the flags of `capi restore`.
type restoreOptions struct {
	dataDir        string
	encryptionKeys string
	identityFile   string
}

// newRestore returns `capi restore`.
func newRestore() *cobra.Command {
	o := restoreOptions{}
	cmd := &cobra.Command{
		Use:   "restore FILE",
		Short: "Create the data directory of a management cluster from a backup",
		Long: `Create the data directory of capi serve from a file of capi backup, on this or another machine. The directory must not exist, or be
empty. It is written beside it, checked, and renamed in the end: if the command fails or is killed, nothing is left that looks like a
management cluster.

Make sure that the previous management cluster has ended: two of them destroy each other's work.

Machines may have been created or deleted since the backup was made. So all Clusters are paused. As soon as capi serve finds that Nodes and
Machines of a Cluster match, it resumes the Cluster. Otherwise condition BackupUpToDate of the Cluster lists the differences, until you
resume it.`,
		Example: `  # Restore, and start
  capi restore mgmt.backup --identity-file capi.key --data-dir ./mgmt
  capi serve --data-dir ./mgmt

  # Restore from another machine
  ssh backup@example.com cat mgmt.backup | capi restore - --identity-file capi.key --data-dir ./mgmt`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 {
				return errors.New(`specify the backup, or "-" for standard input: see capi restore --help`)
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx, stop := signal.NotifyContext(cmd.Context(), os.Interrupt, syscall.SIGTERM)
			defer stop()
			return o.run(ctx, args[0], cmd.InOrStdin(), cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	f := cmd.Flags()
	f.StringVar(&o.dataDir, "data-dir", filepath.Join(xdg.DataHome, "capi"), "Data directory to create")
	f.StringVar(&o.encryptionKeys, "encryption-keys", "",
		"File to write the keys for encrypting Secrets to, for the same flag of capi serve (default: encryption-keys.yaml in the data directory)")
	f.StringVar(&o.identityFile, "identity-file", "", "File with the identity of a recipient of the backup, the secret key")
	_ = cmd.MarkFlagRequired("identity-file") // It exists.
	return cmd
}

// run restores a data directory.
func (o *restoreOptions) run(ctx context.Context, file string, in io.Reader, out, errOut io.Writer) error {
	identities, err := identitiesOf(o.identityFile)
	if err != nil {
		return err
	}
	if file != standardStream {
		opened, err := os.Open(file)
		if err != nil {
			return fmt.Errorf("open the backup: %w", err)
		}
		defer opened.Close() //nolint:errcheck // It was only read.
		in = opened
	}
	began := time.Now()
	restored, err := backup.Target{
		Root: o.dataDir, Keys: o.encryptionKeys, Kubernetes: controlplane.Version(), Now: began, Progress: reporter("Read", errOut),
	}.Restore(ctx, in, identities)
	if err != nil {
		return fmt.Errorf("restore %s: %w", file, err)
	}
	fmt.Fprintf(out, "Restored %s in %s: the state of %s, saved by capi %s\n", o.dataDir, time.Since(began).Round(100*time.Millisecond),
		restored.Created.Format(time.RFC3339), restored.Capi)
	if n := len(restored.Paused); n > 0 {
		names := restored.Paused[:min(n, shownClusters)]
		if n > len(names) {
			names = append(slices.Clip(names), "...")
		}
		fmt.Fprintf(out, "Paused %d Clusters until their Machines match the Nodes that run, or you resume them: %s\n",
			n, strings.Join(names, ", "))
	}
	fmt.Fprintf(out, "Make sure that the previous management cluster is stopped, then run: capi serve --data-dir %s\n", o.dataDir)
	return nil
}
