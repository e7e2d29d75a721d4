// Package backup is the command `clusterctl backup`: it makes a backup of a workload cluster now.
package backup

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	fleetv1 "sigs.k8s.io/cluster-api/api/fleet/v1alpha1"
	"sigs.k8s.io/cluster-api/clusterctl/clusterflags"
	"sigs.k8s.io/cluster-api/clusterctl/command/oncluster"
	"sigs.k8s.io/cluster-api/clusterctl/factory"
	"sigs.k8s.io/cluster-api/clusterctl/management"
	"sigs.k8s.io/cluster-api/sdk/naming"
	"sigs.k8s.io/cluster-api/sdk/report"
)

// Options are the inputs of the command.
type Options struct {
	oncluster.Options
	// Policy is the EtcdBackupPolicy whose settings are used. Empty: the one that selects the Cluster, unless Store is set.
	Policy string
	// Store is the BackupStore; Recipients and IdentitySecret are who can decrypt the archive.
	Store          string
	Recipients     []string
	IdentitySecret string
	// Import creates EtcdBackups for the archives of the Cluster in Store, instead of making a backup.
	Import bool
}

// NewCmd returns the command. runF, if not nil, is run instead.
func NewCmd(f *factory.Factory, runF func(context.Context, *Options) error) *cobra.Command {
	opts := &Options{Options: oncluster.New(f)}
	cmd := &cobra.Command{
		Use:   "backup CLUSTER",
		Short: "Make a backup of a workload cluster's etcd now",
		Long: `Make a backup of a workload cluster's etcd now, with its CAs, in an encrypted archive.

The store and the keys are those of the EtcdBackupPolicy that selects the Cluster, unless flags set them. The backup is kept until its
EtcdBackup is deleted: retention of policies does not concern it.

With --import, no backup is made: EtcdBackups are created for the archives of the Cluster that are in a store, and were lost with another
management cluster. The Cluster need not exist. Deleting these EtcdBackups does not delete the archives.`,
		Example: `  # Back up a workload cluster like its policy does, before a risky change
  clusterctl backup my-cluster

  # Without a policy
  clusterctl backup my-cluster --store bucket --identity-secret backup-key

  # Find the archives of a workload cluster again, in a new management cluster
  clusterctl backup my-cluster --import --store bucket`,
		Args: clusterflags.OneName,
		RunE: func(cmd *cobra.Command, args []string) error {
			opts.ClusterName = args[0]
			if opts.Import {
				if opts.Store == "" || opts.Policy != "" || len(opts.Recipients) > 0 || opts.IdentitySecret != "" {
					return errors.New("--import needs --store, and no keys: they are described beside the archives")
				}
				if runF != nil {
					return runF(cmd.Context(), opts)
				}
				return runImport(cmd.Context(), opts)
			}
			if opts.Store == "" && (len(opts.Recipients) > 0 || opts.IdentitySecret != "") {
				return errors.New("--recipient and --identity-secret need --store")
			}
			if opts.Store != "" && len(opts.Recipients) == 0 && opts.IdentitySecret == "" {
				return errors.New("--store needs --recipient or --identity-secret: archives are always encrypted")
			}
			if runF != nil {
				return runF(cmd.Context(), opts)
			}
			return run(cmd.Context(), opts)
		},
	}
	opts.AddFlags(cmd, f, "Do not wait until the backup is complete and verified, or the archives are imported")
	cmd.Flags().StringVar(&opts.Policy, "policy", "", "Use the store and the keys of this `EtcdBackupPolicy`")
	cmd.Flags().StringVar(&opts.Store, "store", "", "Store the archive in this `BackupStore`")
	cmd.Flags().StringArrayVar(&opts.Recipients, "recipient", nil, "Encrypt the archive for this age public `key`. May be repeated")
	cmd.Flags().StringVar(&opts.IdentitySecret, "identity-secret", "",
		"Encrypt the archive for the age key in this `Secret`, and verify it with that key")
	cmd.Flags().BoolVar(&opts.Import, "import", false,
		"Create EtcdBackups for the archives of the Cluster in --store, instead of making a backup")
	cmd.MarkFlagsMutuallyExclusive("policy", "store")
	return cmd
}

func run(ctx context.Context, opts *Options) error {
	m, cluster, err := opts.Cluster(ctx)
	if err != nil {
		return err
	}
	name := client.ObjectKeyFromObject(cluster)
	settings, err := opts.settings(ctx, m, cluster)
	if meta.IsNoMatchError(err) {
		return management.NoFleet()
	}
	if err != nil {
		return err
	}
	if err := check(ctx, m, name.Namespace, settings); err != nil {
		return err
	}
	b := &fleetv1.EtcdBackup{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: name.Namespace, GenerateName: naming.Limit(name.Name+"-", opts.Clock.Now().UTC().Format("20060102-150405")+"-"),
			Labels:     map[string]string{clusterv1.ClusterNameLabel: naming.LabelValue(name.Name)},
			Finalizers: []string{fleetv1.EtcdBackupFinalizer},
		},
		Spec: fleetv1.EtcdBackupSpec{ClusterName: name.Name, BackupSettings: settings},
	}
	if err := m.Client.Create(ctx, b); err != nil {
		if meta.IsNoMatchError(err) {
			return management.NoFleet()
		}
		return fmt.Errorf("cannot create the EtcdBackup of cluster %s: %w", name, err)
	}
	opts.IO.Infof("Backing up cluster %s to BackupStore %s as EtcdBackup %s", name, settings.StoreRef.Name, b.Name)
	if opts.NoWait {
		return nil
	}
	return opts.follow(ctx, m, client.ObjectKeyFromObject(b))
}

// check returns an error if the store or the key does not exist: the backup would wait for them. Who may not read Secrets finds out later.
func check(ctx context.Context, m *management.Cluster, namespace string, s fleetv1.BackupSettings) error {
	store := &fleetv1.BackupStore{}
	err := m.Client.Get(ctx, client.ObjectKey{Namespace: namespace, Name: s.StoreRef.Name}, store)
	if apierrors.IsNotFound(err) {
		return fmt.Errorf("there is no BackupStore %s in namespace %s", s.StoreRef.Name, namespace)
	}
	if ref := s.Encryption.IdentitySecretRef; err == nil && ref != nil {
		if err := m.Client.Get(ctx, client.ObjectKey{Namespace: namespace, Name: ref.Name}, &corev1.Secret{}); apierrors.IsNotFound(err) {
			return fmt.Errorf("there is no Secret %s in namespace %s: make a key with \"age-keygen\" or \"capi backup --generate-key\"",
				ref.Name, namespace)
		}
	}
	return nil
}

// settings returns the settings of the backup.
func (o *Options) settings(ctx context.Context, m *management.Cluster, cluster *unstructured.Unstructured) (fleetv1.BackupSettings, error) {
	if o.Store != "" {
		s := fleetv1.BackupSettings{
			StoreRef: fleetv1.LocalReference{Name: o.Store}, Encryption: fleetv1.Encryption{Recipients: o.Recipients},
		}
		if o.IdentitySecret != "" {
			s.Encryption.IdentitySecretRef = &fleetv1.LocalReference{Name: o.IdentitySecret}
		}
		return s, nil
	}
	policies := &fleetv1.EtcdBackupPolicyList{}
	if err := m.Client.List(ctx, policies, client.InNamespace(cluster.GetNamespace())); err != nil {
		return fleetv1.BackupSettings{}, err
	}
	var fitting []string
	var found *fleetv1.EtcdBackupPolicy
	for i := range policies.Items {
		p := &policies.Items[i]
		selector, err := metav1.LabelSelectorAsSelector(&p.Spec.ClusterSelector)
		if o.Policy == p.Name || o.Policy == "" && err == nil && selector.Matches(labels.Set(cluster.GetLabels())) {
			found, fitting = p, append(fitting, p.Name)
		}
	}
	slices.Sort(fitting)
	switch {
	case len(fitting) == 1:
		return found.Spec.BackupSettings, nil
	case len(fitting) > 1:
		return fleetv1.BackupSettings{}, fmt.Errorf("several EtcdBackupPolicies select cluster %s: choose one with --policy: %s",
			cluster.GetName(), strings.Join(fitting, ", "))
	case o.Policy != "":
		return fleetv1.BackupSettings{}, fmt.Errorf("there is no EtcdBackupPolicy %s in namespace %s", o.Policy, cluster.GetNamespace())
	}
	return fleetv1.BackupSettings{}, fmt.Errorf("no EtcdBackupPolicy in namespace %s selects cluster %s: "+
		"use --store with --identity-secret or --recipient", cluster.GetNamespace(), cluster.GetName())
}

// follow waits until the backup is verified, and prints what happens.
func (o *Options) follow(ctx context.Context, m *management.Cluster, key types.NamespacedName) error {
	ctx, cancel := context.WithTimeout(ctx, o.Timeout)
	defer cancel()
	said := ""
	for {
		b, err := o.changed(ctx, m, key, &said)
		switch {
		case ctx.Err() != nil:
			return o.late(context.WithoutCancel(ctx), m, key)
		case err != nil:
			return fmt.Errorf("cannot read EtcdBackup %s: %w", key, err)
		case b == nil:
			continue
		case b.Status.Phase == fleetv1.BackupPhaseFailed:
			return fmt.Errorf("EtcdBackup %s has failed: %s", key.Name, message(b))
		}
		o.IO.Infof("Backup %s is complete: revision %d of member %s, %s, verified by %s", b.Name, b.Status.Etcd.Revision, b.Status.Etcd.Member,
			clusterflags.Size(b.Status.Archive.SizeBytes), b.Status.Verified.Method)
		return nil
	}
}

// late returns the error of a backup that is not verified in time: it may be complete, and can be restored then.
func (o *Options) late(ctx context.Context, m *management.Cluster, key types.NamespacedName) error {
	b, what := &fleetv1.EtcdBackup{}, "is not complete"
	if err := m.Client.Get(ctx, key, b); err == nil && b.Status.Phase == fleetv1.BackupPhaseCompleted {
		what = "is complete, but not verified"
	}
	return fmt.Errorf("EtcdBackup %s %s after %s; it goes on: see `clusterctl get backups -n %s`", key.Name, what, o.Timeout, key.Namespace)
}

// changed watches the backup until it has ended, or the watch has. It is nil in the latter case.
func (o *Options) changed(ctx context.Context, m *management.Cluster, key types.NamespacedName, said *string) (*fleetv1.EtcdBackup, error) {
	events, err := m.Client.Watch(ctx, &fleetv1.EtcdBackupList{}, client.InNamespace(key.Namespace),
		client.MatchingFieldsSelector{Selector: fields.OneTermEqualSelector("metadata.name", key.Name)})
	if err != nil {
		return nil, err
	}
	defer events.Stop()
	for event := range events.ResultChan() {
		b, ok := event.Object.(*fleetv1.EtcdBackup)
		if !ok {
			continue
		}
		if event.Type == watch.Deleted {
			return nil, errors.New("it was deleted")
		}
		if b.Status.Phase == fleetv1.BackupPhaseFailed || b.Status.Phase == fleetv1.BackupPhaseCompleted && b.Status.Verified != nil {
			return b, nil
		}
		if text := cmp.Or(message(b), string(b.Status.Phase)); text != "" && text != *said {
			o.IO.Infof("%s: %s", b.Name, text)
			*said = text
		}
	}
	return nil, nil
}

// message returns what the conditions of a backup say.
func message(b *fleetv1.EtcdBackup) string {
	for _, t := range []string{fleetv1.BackupCompletedCondition, fleetv1.BackupVerifiedCondition} {
		if c := report.Get(b, t); c != nil && c.Message != "" {
			return c.Message
		}
	}
	return ""
}
