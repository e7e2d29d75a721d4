package command

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"filippo.io/age"
	"github.com/adrg/xdg"
	"github.com/spf13/cobra"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc/grpclog"
	"k8s.io/apimachinery/pkg/util/version"

	"sigs.k8s.io/cluster-api/backup/archive"
	build "sigs.k8s.io/cluster-api/sdk/version"
	"sigs.k8s.io/cluster-api/standalone/internal/backup"
	"sigs.k8s.io/cluster-api/standalone/internal/controlplane"
	"sigs.k8s.io/cluster-api/standalone/internal/datadir"
)

const (
	// storageTimeout is how long etcd of a running capi may take to respond.
	storageTimeout = 30 * time.Second
	// progressEvery is how often the progress of a backup or restore is printed.
	progressEvery = 2 * time.Second
	// standardStream is the name of a file that means standard input or output.
	standardStream = "-"
)

// backupOptions are the flags of `capi backup`.
type backupOptions struct {
	dataDir        string
	encryptionKeys string
	recipients     []string
	identityFile   string
	generateKey    string
}

// newBackup returns `capi backup`.
func newBackup() *cobra.Command {
	o := backupOptions{}
	cmd := &cobra.Command{
		Use:   "backup FILE",
		Short: "Save a management cluster in one encrypted file",
		Long: `Save the data directory of capi serve in one file: etcd, the CA and other keys, settings, and the files of components. capi serve
may run meanwhile, and does not stop for it.

The file is encrypted with age (https://age-encryption.org) for all recipients, which are public keys. Only their identities, the secret
keys, can decrypt it: keep them, but not with the backups. --generate-key writes an identity; so does the program age-keygen.

FILE must not exist. It is written under another name, and renamed when it is complete. "-" is standard output.

It does not contain what runs in workload clusters, except simulated ones, and no logs.`,
		Example: `  # Once: generate a key, and print its recipient
  capi backup --generate-key capi.key

  # Save the management cluster
  capi backup --data-dir ./mgmt --recipient age1ql3z7hjy54pw3hyww5ayyfg7zqgvc7w3j2elw8zmrj2kg5sfn9aqmcac8p mgmt.backup

  # Save it for the recipients of a file of keys
  capi backup --data-dir ./mgmt --identity-file capi.key mgmt.backup

  # Store it on another machine
  capi backup --data-dir ./mgmt --recipient age1... - | ssh backup@example.com 'cat > mgmt.backup'`,
		Args: func(cmd *cobra.Command, args []string) error {
			if o.generateKey != "" {
				return cobra.NoArgs(cmd, args)
			}
			if len(args) != 1 {
				return errors.New(`specify the file to write, or "-" for standard output: see capi backup --help`)
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx, stop := signal.NotifyContext(cmd.Context(), os.Interrupt, syscall.SIGTERM)
			defer stop()
			if o.generateKey != "" {
				return generateKey(o.generateKey, cmd.OutOrStdout())
			}
			return o.run(ctx, args[0], cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	f := cmd.Flags()
	f.StringVar(&o.dataDir, "data-dir", filepath.Join(xdg.DataHome, "capi"), "Data directory of capi serve")
	f.StringVar(&o.encryptionKeys, "encryption-keys", "",
		"File with the keys for encrypting Secrets at rest, if capi serve has this flag (default: encryption-keys.yaml in the data directory)")
	f.StringArrayVar(&o.recipients, "recipient", nil, "Public key of age, age1..., whose identity can decrypt the backup. Can be repeated")
	f.StringVar(&o.identityFile, "identity-file", "", "File with identities of age; the backup is encrypted for their recipients")
	f.StringVar(&o.generateKey, "generate-key", "", "Write a new identity to this `file`, print its recipient, and save nothing")
	return cmd
}

// run saves the data directory in a file.
func (o *backupOptions) run(ctx context.Context, file string, out, errOut io.Writer) (err error) {
	recipients, err := recipientsOf(o.recipients, o.identityFile)
	if err != nil {
		return err
	}
	found, err := datadir.Find(o.dataDir)
	if err != nil {
		return err
	}
	storage, release, err := openStorage(ctx, found)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, release()) }()
	source := sourceOf(found.Root, o.encryptionKeys, storage)
	source.Kubernetes = cmp.Or(found.Kubernetes, source.Kubernetes)
	source.Progress = reporter("Saved", errOut)
	if file == standardStream {
		_, err := source.Save(ctx, out, recipients)
		return err
	}
	began := time.Now()
	m, size, err := source.SaveFile(ctx, file, recipients)
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "Saved %s to %s: %s, Kubernetes %s, revision %d of etcd, in %s\n",
		found.Root, file, megabytes(size), m.Kubernetes, m.Revision, time.Since(began).Round(100*time.Millisecond))
	return nil
}

// sourceOf describes a data directory.
func sourceOf(root, keys string, storage *clientv3.Client) backup.Source {
	if keys == "" {
		keys = filepath.Join(root, "encryption-keys.yaml")
	}
	return backup.Source{
		Root: root, Keys: keys, Storage: storage, Capi: build.Get().GitVersion, Kubernetes: controlplane.Version(), Now: time.Now,
	}
}

// openStorage connects to the etcd of the process that has the data directory open. If there is none, it opens the directory and starts
// etcd.
func openStorage(ctx context.Context, found datadir.Existing) (*clientv3.Client, func() error, error) {
	grpclog.SetLoggerV2(grpclog.NewLoggerV2(io.Discard, io.Discard, io.Discard)) // It warns of connections that are closed while connecting.
	if found.Process != 0 {
		client, err := controlplane.DialStorage(found.Socket("etcd"))
		if err != nil {
			return nil, nil, err
		}
		ready, cancel := context.WithTimeout(ctx, storageTimeout)
		defer cancel()
		if _, err := client.Get(ready, "/", clientv3.WithCountOnly()); err != nil {
			return nil, nil, errors.Join(fmt.Errorf("etcd of capi serve (process %d) does not respond, is it starting or ending? %w",
				found.Process, err), client.Close())
		}
		return client, client.Close, nil
	}
	dir, err := datadir.Open(found.Root, openedAs(found.Kubernetes))
	if err != nil {
		return nil, nil, err
	}
	if _, err := os.Stat(dir.Path("etcd", "member")); err != nil {
		return nil, nil, errors.Join(fmt.Errorf("data directory %s is empty: %w", dir.Root(), err), dir.Close())
	}
	storage, err := controlplane.OpenStorage(ctx, dir.Path("etcd"), dir.Socket("etcd"), io.Discard)
	if err != nil {
		return nil, nil, errors.Join(err, dir.Close())
	}
	return storage.Client, func() error { return errors.Join(storage.Close(), dir.Close()) }, nil
}

// openedAs returns the version of Kubernetes to open data with. Older data stays what it is: an older program can still use it.
func openedAs(written string) string {
	ours := controlplane.Version()
	if order, err := version.MustParseGeneric(ours).Compare(written); err == nil && order > 0 {
		return written
	}
	return ours
}

// recipientsOf returns the recipients to encrypt for.
func recipientsOf(texts []string, identityFile string) ([]age.Recipient, error) {
	if len(texts) == 0 && identityFile == "" {
		return nil, errors.New("a backup has the keys of all clusters, and is always encrypted: set --recipient or --identity-file; " +
			"capi backup --generate-key FILE generates a key")
	}
	if identityFile != "" {
		identities, err := identitiesOf(identityFile)
		if err != nil {
			return nil, err
		}
		for _, identity := range identities {
			switch identity := identity.(type) {
			case *age.X25519Identity:
				texts = append(texts, identity.Recipient().String())
			case *age.HybridIdentity:
				texts = append(texts, identity.Recipient().String())
			}
		}
	}
	recipients, err := archive.ParseRecipients(texts)
	if err != nil {
		return nil, fmt.Errorf("--recipient: %w", err)
	}
	return recipients, nil
}

// identitiesOf reads an identity file.
func identitiesOf(path string) ([]age.Identity, error) {
	content, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("--identity-file: %w", err)
	}
	identities, err := archive.ParseIdentities(content)
	if err != nil {
		return nil, fmt.Errorf("--identity-file %s: %w", path, err)
	}
	return identities, nil
}

// generateKey writes a new identity in the format of age-keygen.
func generateKey(path string, out io.Writer) error {
	identity, err := age.GenerateX25519Identity()
	if err != nil {
		return fmt.Errorf("generate a key: %w", err)
	}
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("--generate-key: %s exists, and is not replaced: backups may need it", path)
	}
	if err != nil {
		return fmt.Errorf("--generate-key: %w", err)
	}
	_, err = fmt.Fprintf(file, "# created: %s\n# public key: %s\n%s\n", time.Now().UTC().Format(time.RFC3339), identity.Recipient(), identity)
	if err = errors.Join(err, file.Sync(), file.Close()); err != nil {
		return fmt.Errorf("--generate-key: %w", errors.Join(err, os.Remove(path)))
	}
	_, err = fmt.Fprintf(out, "%s\n", identity.Recipient())
	return err
}

// reporter prints progress at most every progressEvery.
func reporter(done string, out io.Writer) func(n, total int64) {
	last := time.Now()
	return func(n, total int64) {
		if now := time.Now(); now.Sub(last) >= progressEvery {
			last = now
			fmt.Fprintf(out, "%s %s of %s\n", done, megabytes(n), megabytes(total))
		}
	}
}

// megabytes prints a size.
func megabytes(n int64) string {
	return strings.TrimSuffix(fmt.Sprintf("%.1f", float64(n)/(1<<20)), ".0") + " MiB"
}
