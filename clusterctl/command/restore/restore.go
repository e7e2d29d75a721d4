// Package restore is the command `clusterctl restore`: it replaces the control plane of a workload cluster by one with the data of a
// backup.
package restore

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/duration"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	fleetv1 "sigs.k8s.io/cluster-api/api/fleet/v1alpha1"
	"sigs.k8s.io/cluster-api/clusterctl/clusterflags"
	"sigs.k8s.io/cluster-api/clusterctl/factory"
	"sigs.k8s.io/cluster-api/clusterctl/iostreams"
	"sigs.k8s.io/cluster-api/clusterctl/management"
	"sigs.k8s.io/cluster-api/clusterctl/tree"
	"sigs.k8s.io/cluster-api/sdk/naming"
)

// defaultTimeout is how long a restore is waited for: machines of some providers take a quarter of an hour to start, and are deleted
// before.
const defaultTimeout = time.Hour

// Options are the inputs of the command.
type Options struct {
	IO          *iostreams.Streams
	Connect     func(management.Kubeconfig) (*management.Cluster, error)
	Clock       clock.PassiveClock
	Kubeconfig  management.Kubeconfig
	Namespace   string
	ClusterName string
	// From is the EtcdBackup. Store and Key are an archive without one, instead.
	From, Store, Key string
	// IdentitySecret is the Secret with the private key of the archive. Empty: that of the EtcdBackup.
	IdentitySecret string
	// Confirm is the value of spec.confirm; Yes confirms what the restore asks for.
	Confirm string
	Yes     bool
	// AcceptOtherCluster and Fenced are the fields of the spec.
	AcceptOtherCluster, Fenced bool
	Wait                       bool
	Timeout                    time.Duration
}

// NewCmd returns the command. runF, if not nil, is run instead.
func NewCmd(f *factory.Factory, runF func(context.Context, *Options) error) *cobra.Command {
	opts, noWait := &Options{IO: f.IO, Connect: f.Connect, Clock: clock.RealClock{}}, false
	cmd := &cobra.Command{
		Use:   "restore CLUSTER",
		Short: "Restore the control plane of a workload cluster from a backup",
		Long: `Restore the control plane of a workload cluster from a backup, after all of its machines or its data are lost.

All control plane Machines are deleted, and replaced by new ones with the data of the backup. Workers stay. The command says what will be
lost, and asks before anything is changed.`,
		Example: `  # See which backups there are, and restore one
  clusterctl get backups my-cluster
  clusterctl restore my-cluster --from my-cluster-20260102-030405-abcde

  # Restore an archive whose EtcdBackup is lost with its management cluster
  clusterctl restore my-cluster --store bucket --key default/my-cluster/nightly.age --identity-secret backup-key`,
		Args: clusterflags.OneName,
		RunE: func(cmd *cobra.Command, args []string) error {
			opts.ClusterName, opts.Wait = args[0], !noWait
			switch {
			case (opts.From == "") == (opts.Store == ""):
				return errors.New("one of --from and --store must be set: see `clusterctl get backups " + args[0] + "`")
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
	cmd.Flags().BoolVar(&noWait, "no-wait", false, "Do not wait until the control plane is restored")
	return cmd
}

func (o *Options) addFlags(cmd *cobra.Command, f *factory.Factory) {
	clusterflags.AddKubeconfig(cmd, &o.Kubeconfig, false)
	clusterflags.AddNamespace(cmd, f, &o.Kubeconfig, &o.Namespace)
	fs := cmd.Flags()
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
	fs.DurationVar(&o.Timeout, "timeout", defaultTimeout, "How long to wait, for example 90s or 20m")
	cmd.ValidArgsFunction = clusterflags.ClusterNames(f, &o.Kubeconfig, &o.Namespace)
}

func run(ctx context.Context, opts *Options) error {
	m, err := opts.Connect(opts.Kubeconfig)
	if err != nil {
		return err
	}
	name := m.Key(opts.Namespace, opts.ClusterName)
	cluster := &unstructured.Unstructured{}
	cluster.SetGroupVersionKind(tree.ClusterKind)
	if err := m.Client.Get(ctx, name, cluster); err != nil {
		if client.IgnoreNotFound(err) == nil {
			return management.NoCluster(name)
		}
		return m.OrNotInitialized(ctx, err)
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
	if !opts.Wait {
		return nil
	}
	return f.follow(ctx)
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
