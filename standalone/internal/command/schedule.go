package command

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"filippo.io/age"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/spf13/pflag"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"sigs.k8s.io/cluster-api/backup/archive"
	"sigs.k8s.io/cluster-api/standalone/internal/backup"
	"sigs.k8s.io/cluster-api/standalone/internal/controlplane"
	"sigs.k8s.io/cluster-api/standalone/internal/datadir"
)

// shortestInterval is the shortest time between two backups.
const shortestInterval = time.Minute

// scheduleOptions are the flags of `capi serve` for backups.
type scheduleOptions struct {
	folder     string
	interval   time.Duration
	recipients []string
	keep       int
}

func (o *scheduleOptions) addTo(f *pflag.FlagSet) {
	f.StringVar(&o.folder, "backup-dir", "", "Existing directory to save backups in, as capi backup does (default: no backups)")
	f.DurationVar(&o.interval, "backup-interval", 24*time.Hour, "Time from one backup to the next")
	f.StringArrayVar(&o.recipients, "backup-recipient", nil, "Public key of age that can decrypt the backups. Can be repeated")
	f.IntVar(&o.keep, "backup-keep", 7, "Number of backups to keep")
}

// parse checks the flags, and returns the recipients; none without backups.
func (o *scheduleOptions) parse() ([]age.Recipient, error) {
	switch {
	case o.folder == "" && len(o.recipients) > 0:
		return nil, errors.New("--backup-recipient requires --backup-dir")
	case o.folder == "":
		return nil, nil
	case len(o.recipients) == 0:
		return nil, errors.New("--backup-dir requires --backup-recipient, because a backup has the keys of all clusters: " +
			"capi backup --generate-key FILE generates a key")
	case o.interval < shortestInterval:
		return nil, fmt.Errorf("--backup-interval is %s: must be at least %s", o.interval, shortestInterval)
	case o.keep < 1:
		return nil, fmt.Errorf("--backup-keep is %d: must be at least 1", o.keep)
	}
	recipients, err := archive.ParseRecipients(o.recipients)
	if err != nil {
		return nil, fmt.Errorf("--backup-recipient: %w", err)
	}
	return recipients, nil
}

// warn reports a directory of backups that does not exist. Clusters are managed all the same: its volume may be mounted later.
func (o *scheduleOptions) warn(errOut io.Writer) {
	if o.folder == "" {
		return
	}
	if _, err := os.Stat(o.folder); err != nil {
		fmt.Fprintf(errOut, "Warning: no backups can be saved: --backup-dir: %v\n", err)
	}
}

// schedule saves backups until the context ends.
func (o *serveOptions) schedule(ctx context.Context, recipients []age.Recipient, dir *datadir.Dir, log logTarget) {
	storage, err := controlplane.DialStorage(dir.Socket("etcd"))
	if err != nil {
		log.logger.Error(err, "Backups are not saved")
		return
	}
	defer storage.Close() //nolint:errcheck // It ends with this process.
	last, failed := lastBackup()
	backup.Schedule{
		Source: sourceOf(dir.Root(), o.encryptionKeys, storage), Folder: o.backups.folder, Recipients: recipients,
		Interval: o.backups.interval, Keep: o.backups.keep, Clock: clock.RealClock{},
		Done: func(path string, err error) {
			if path != "" {
				last.SetToCurrentTime()
				log.logger.Info("Saved a backup", "path", path)
			}
			if err != nil {
				failed.Inc()
				log.logger.Error(err, "Backup failed", "directory", o.backups.folder)
			}
		},
	}.Run(ctx)
}

// lastBackup returns the metrics of backups.
func lastBackup() (last prometheus.Gauge, failed prometheus.Counter) {
	last = prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "capi_backup_last_success_timestamp_seconds", Help: "Time of the last backup of the management cluster by this process",
	})
	failed = prometheus.NewCounter(prometheus.CounterOpts{
		Name: "capi_backup_failures_total", Help: "Number of backups of the management cluster that have failed",
	})
	metrics.Registry.MustRegister(last, failed)
	return last, failed
}
