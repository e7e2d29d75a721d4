// Package restore is the command `clusterctl restore`: it replaces the control plane of a workload cluster by one with the data of a
// backup.
package restore

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/duration"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	fleetv1 "sigs.k8s.io/cluster-api/api/fleet/v1alpha1"
	"sigs.k8s.io/cluster-api/clusterctl/clusterflags"
	"sigs.k8s.io/cluster-api/clusterctl/command/oncluster"
	"sigs.k8s.io/cluster-api/clusterctl/factory"
	"sigs.k8s.io/cluster-api/clusterctl/management"
	"sigs.k8s.io/cluster-api/sdk/naming"
)

// Options are the inputs of the command.
type Options struct {
	oncluster.Options
	// Latest restores the latest EtcdBackup of the Cluster that has completed, instead of From.
	Latest bool
	// From is the EtcdBackup. Store and Key are an archive without one, instead.
	From, Store, Key string
	// IdentitySecret is the Secret with the private key of the archive. Empty: that of the EtcdBackup.
	IdentitySecret string
	// Confirm is the value of spec.confirm; Yes confirms what the restore asks for.
	Confirm string
	Yes     bool
	// AcceptOtherCluster and Fenced are the fields of the spec.
	AcceptOtherCluster, Fenced bool
}

// NewCmd returns the command. runF, if not nil, is run instead.
func NewCmd(f *factory.Factory, runF func(context.Context, *Options) error) *cobra.Command {
	opts := &Options{Options: oncluster.New(f)}
	cmd := &cobra.Command{
		Use:   "restore CLUSTER",
		Short: "Restore the control plane of a workload cluster from a backup",
		Long: `Restore the control plane of a workload cluster from a backup, after all of its machines or its data are lost.

All control plane Machines are deleted, and replaced by new ones with the data of the backup. Workers stay. The command says what will be
lost, and asks before anything is changed.`,
		Example: `  # Restore the latest backup that is complete
  clusterctl restore my-cluster --latest

  # See which backups there are, and restore one
  clusterctl get backups my-cluster
  clusterctl restore my-cluster --from my-cluster-20260102-030405-abcde

  # Restore an archive whose EtcdBackup is lost with its management cluster
  clusterctl restore my-cluster --store bucket --key default/my-cluster/nightly.age --identity-secret backup-key`,
		Args: clusterflags.OneName,
		RunE: func(cmd *cobra.Command, args []string) error {
			opts.ClusterName = args[0]
			switch {
			case opts.From == "" && opts.Store == "" && !opts.Latest:
				return errors.New("one of --latest, --from and --store must be set: see `clusterctl get backups " + args[0] + "`")
			case opts.Store != "" && (opts.Key == "" || opts.IdentitySecret == ""):
				return errors.New("--store needs --key and --identity-secret")
			case opts.Store == "" && opts.Key != "":
				return errors.New("--key needs --store")
			case opts.Confirm != "" && opts.Yes:
				return errors.New("only one of --confirm and --yes can be set")
			}
			if runF != nil {
				return runF(cmd.Context(), opts)
			}
			return run(cmd.Context(), opts)
		},
	}
	opts.addFlags(cmd, f)
	return cmd
}

func (o *Options) addFlags(cmd *cobra.Command, f *factory.Factory) {
	o.AddFlags(cmd, f, "Do not wait until the control plane is restored")
	fs := cmd.Flags()
	fs.BoolVar(&o.Latest, "latest", false, "Restore the latest EtcdBackup of the Cluster that is complete")
	fs.StringVar(&o.From, "from", "", "Restore this `EtcdBackup`")
	fs.StringVar(&o.Store, "store", "", "Restore an archive in this `BackupStore`, without an EtcdBackup")
	fs.StringVar(&o.Key, "key", "", "Restore the archive with this `key` in the store")
	fs.StringVar(&o.IdentitySecret, "identity-secret", "",
		"Decrypt the archive with the age key in this `Secret`. Defaults to that of the EtcdBackup")
	fs.StringVar(&o.Confirm, "confirm", "", "Confirm with this `value`, CLUSTER@REVISION, instead of being asked")
	fs.BoolVarP(&o.Yes, "yes", "y", false, "Confirm without being asked")
	fs.BoolVar(&o.AcceptOtherCluster, "accept-other-cluster", false,
		"The backup may be of another Cluster, whose load balancers and volumes the restored cluster acts on")
	fs.BoolVar(&o.Fenced, "fenced", false, "Machines that cannot be deleted are lost, and never run again")
	cmd.MarkFlagsMutuallyExclusive("latest", "from", "store")
}

func run(ctx context.Context, opts *Options) error {
	m, cluster, err := opts.Cluster(ctx)
	if err != nil {
		return err
	}
	name := client.ObjectKeyFromObject(cluster)
	if opts.Latest {
		if opts.From, err = latest(ctx, m, name); err != nil {
			return err
		}
	}
	if err := opts.describe(ctx, m, name); err != nil {
		return err
	}
	r := opts.object(name)
	if err := m.Client.Create(ctx, r); err != nil {
		if meta.IsNoMatchError(err) {
			return management.NoFleet()
		}
		return fmt.Errorf("cannot create the ControlPlaneRestore of cluster %s: %w", name, err)
	}
	f := &follower{Options: opts, management: m, key: client.ObjectKeyFromObject(r)}
	if opts.Confirm == "" {
		opts.IO.Infof("Reading the backup; nothing is changed yet")
		if err := f.confirm(ctx); err != nil {
			return err
		}
	}
	opts.IO.Infof("Restoring the control plane of cluster %s as ControlPlaneRestore %s", name, r.Name)
	if opts.NoWait {
		return nil
	}
	return f.follow(ctx)
}

// latest returns the name of the latest EtcdBackup of a Cluster that has completed.
func latest(ctx context.Context, m *management.Cluster, cluster types.NamespacedName) (string, error) {
	list := &fleetv1.EtcdBackupList{}
	err := m.Client.List(ctx, list, client.InNamespace(cluster.Namespace),
		client.MatchingLabels{clusterv1.ClusterNameLabel: naming.LabelValue(cluster.Name)})
	if meta.IsNoMatchError(err) {
		return "", management.NoFleet()
	}
	if err != nil {
		return "", fmt.Errorf("cannot list EtcdBackups: %w", err)
	}
	var found *fleetv1.EtcdBackup
	for i := range list.Items {
		b := &list.Items[i]
		if b.Status.Phase == fleetv1.BackupPhaseCompleted && b.DeletionTimestamp.IsZero() && b.Status.StartTime != nil &&
			(found == nil || b.Status.StartTime.After(found.Status.StartTime.Time)) {
			found = b
		}
	}
	if found == nil {
		return "", fmt.Errorf("there is no complete EtcdBackup of cluster %s: see `clusterctl get backups %s -n %s`", cluster, cluster.Name,
			cluster.Namespace)
	}
	return found.Name, nil
}

// describe says what is restored.
func (o *Options) describe(ctx context.Context, m *management.Cluster, cluster types.NamespacedName) error {
	if o.From == "" {
		return nil
	}
	b := &fleetv1.EtcdBackup{}
	err := m.Client.Get(ctx, client.ObjectKey{Namespace: cluster.Namespace, Name: o.From}, b)
	switch {
	case meta.IsNoMatchError(err):
		return management.NoFleet()
	case apierrors.IsNotFound(err):
		return fmt.Errorf("there is no EtcdBackup %s in namespace %s: see `clusterctl get backups %s -n %s`", o.From, cluster.Namespace,
			cluster.Name, cluster.Namespace)
	case err != nil:
		return fmt.Errorf("cannot read EtcdBackup %s: %w", o.From, err)
	case b.Status.Phase != fleetv1.BackupPhaseCompleted || b.Status.Etcd == nil || b.Status.StartTime == nil:
		return fmt.Errorf("EtcdBackup %s is %s: only one that is %s can be restored", o.From,
			cmp.Or(b.Status.Phase, fleetv1.BackupPhasePending), fleetv1.BackupPhaseCompleted)
	}
	verified := "not verified"
	if b.Status.Verified != nil {
		verified = "verified by " + string(b.Status.Verified.Method)
	}
	o.IO.Infof("Backup %s of cluster %s: made %s ago, revision %d, Kubernetes %s, %s", b.Name, b.Spec.ClusterName,
		duration.HumanDuration(o.Clock.Since(b.Status.StartTime.Time)), b.Status.Etcd.Revision,
		cmp.Or(b.Status.KubernetesVersion, "of an unknown version"), verified)
	return nil
}

// object returns the ControlPlaneRestore.
func (o *Options) object(cluster types.NamespacedName) *fleetv1.ControlPlaneRestore {
	r := &fleetv1.ControlPlaneRestore{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: cluster.Namespace, GenerateName: naming.Limit(cluster.Name+"-", o.Clock.Now().UTC().Format("20060102-150405")+"-"),
			Labels:     map[string]string{clusterv1.ClusterNameLabel: naming.LabelValue(cluster.Name)},
			Finalizers: []string{fleetv1.ControlPlaneRestoreFinalizer},
		},
		Spec: fleetv1.ControlPlaneRestoreSpec{ClusterName: cluster.Name, BackupName: o.From, Confirm: o.Confirm},
	}
	if o.Store != "" {
		r.Spec.Archive = &fleetv1.ArchiveReference{StoreRef: fleetv1.LocalReference{Name: o.Store}, Key: o.Key}
	}
	if o.IdentitySecret != "" {
		r.Spec.IdentitySecretRef = &fleetv1.LocalReference{Name: o.IdentitySecret}
	}
	if o.AcceptOtherCluster {
		r.Spec.AcceptOtherCluster = ptr.To(true)
	}
	if o.Fenced {
		r.Spec.Fenced = ptr.To(true)
	}
	return r
}
