package get

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/util/duration"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	fleetv1 "sigs.k8s.io/cluster-api/api/fleet/v1alpha1"
	"sigs.k8s.io/cluster-api/clusterctl/clusterflags"
	"sigs.k8s.io/cluster-api/clusterctl/factory"
	"sigs.k8s.io/cluster-api/clusterctl/iostreams"
	"sigs.k8s.io/cluster-api/clusterctl/management"
	"sigs.k8s.io/cluster-api/sdk/naming"
	"sigs.k8s.io/cluster-api/sdk/report"
)

// BackupsOptions are the inputs of the command.
type BackupsOptions struct {
	IO            *iostreams.Streams
	Connect       func(management.Kubeconfig) (*management.Cluster, error)
	Clock         clock.PassiveClock
	Kubeconfig    management.Kubeconfig
	Namespace     string
	AllNamespaces bool
	// ClusterName selects the backups of one Cluster; empty for all.
	ClusterName string
	// Output is text, wide, name, json or yaml.
	Output string
	// NoHeaders leaves out the first line of a table.
	NoHeaders bool
}

// NewBackups returns the command. runF, if not nil, is run instead.
func NewBackups(f *factory.Factory, runF func(context.Context, *BackupsOptions) error) *cobra.Command {
	opts := &BackupsOptions{IO: f.IO, Connect: f.Connect, Clock: clock.RealClock{}}
	cmd := &cobra.Command{
		Use:     "backups [CLUSTER]",
		Aliases: []string{"backup", "etcdbackups"},
		Short:   "List the backups of workload clusters",
		Long: `List the backups of workload clusters, the latest of each cluster first: whether they are complete, and how they were verified.

A backup with the verification Restored was restored into an etcd server, which served all of its keys. To restore the control plane of a
cluster from a backup, see ` + "`clusterctl restore --help`" + `.`,
		Example: `  # List the backups of a workload cluster
  clusterctl get backups my-cluster

  # List those of all namespaces, with their keys in the store
  clusterctl get backups --all-namespaces --output wide`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				opts.ClusterName = args[0]
			}
			if runF != nil {
				return runF(cmd.Context(), opts)
			}
			return runBackups(cmd.Context(), opts)
		},
	}
	clusterflags.AddKubeconfig(cmd, &opts.Kubeconfig, false)
	clusterflags.AddNamespace(cmd, f, &opts.Kubeconfig, &opts.Namespace)
	cmd.Flags().BoolVarP(&opts.AllNamespaces, "all-namespaces", "A", false, "List the backups of all namespaces")
	clusterflags.AddObjectOutput(cmd, &opts.Output)
	cmd.Flags().BoolVar(&opts.NoHeaders, "no-headers", false, "Leave out the headings of a table")
	cmd.MarkFlagsMutuallyExclusive("namespace", "all-namespaces")
	cmd.ValidArgsFunction = clusterflags.ClusterNames(f, &opts.Kubeconfig, &opts.Namespace)
	return cmd
}

func runBackups(ctx context.Context, opts *BackupsOptions) error {
	m, err := opts.Connect(opts.Kubeconfig)
	if err != nil {
		return err
	}
	which := []client.ListOption{client.InNamespace(cmp.Or(opts.Namespace, m.Namespace))}
	if opts.AllNamespaces {
		which = nil
	}
	if opts.ClusterName != "" {
		which = append(which, client.MatchingLabels{clusterv1.ClusterNameLabel: naming.LabelValue(opts.ClusterName)})
	}
	list := &fleetv1.EtcdBackupList{}
	switch err := m.Client.List(ctx, list, which...); {
	case meta.IsNoMatchError(err):
		return management.NoFleet()
	case err != nil:
		return fmt.Errorf("cannot list EtcdBackups: %w", err)
	}
	if len(list.Items) == 0 && opts.ClusterName != "" {
		where := "in namespace " + cmp.Or(opts.Namespace, m.Namespace)
		if opts.AllNamespaces {
			where = "in any namespace"
		}
		return fmt.Errorf("there are no backups of cluster %s %s: see `clusterctl get backups`, or make one with `clusterctl backup %s`",
			opts.ClusterName, where, opts.ClusterName)
	}
	slices.SortFunc(list.Items, func(a, b fleetv1.EtcdBackup) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Spec.ClusterName, b.Spec.ClusterName),
			b.CreationTimestamp.Compare(a.CreationTimestamp.Time), cmp.Compare(a.Name, b.Name))
	})
	return writeBackups(opts, list)
}

func writeBackups(opts *BackupsOptions, list *fleetv1.EtcdBackupList) error {
	switch {
	case clusterflags.ForPrograms(opts.Output):
		list.APIVersion, list.Kind = fleetv1.GroupVersion.String(), fleetv1.EtcdBackupKind+"List"
		return clusterflags.Print(opts.IO.Out, opts.Output, list)
	case opts.Output == "name":
		for i := range list.Items {
			fmt.Fprintln(opts.IO.Out, "etcdbackup.fleet.cluster.x-k8s.io/"+list.Items[i].Name)
		}
		return nil
	case len(list.Items) == 0:
		opts.IO.Infof("No backups found")
		return nil
	}
	w := tabwriter.NewWriter(opts.IO.Out, 0, 8, 3, ' ', 0)
	line := func(cells ...string) { fmt.Fprintln(w, strings.TrimRight(strings.Join(cells, "\t"), "\t")) }
	columns := []string{"CLUSTER", "NAME", "PHASE", "VERIFIED", "REVISION", "SIZE", "AGE"}
	if opts.AllNamespaces {
		columns = append([]string{"NAMESPACE"}, columns...)
	}
	if opts.Output == "wide" {
		columns = append(columns, "MEMBER", "ETCD", "STORE", "KEY")
	}
	if !opts.NoHeaders {
		line(append(columns, "MESSAGE")...)
	}
	now := opts.Clock.Now()
	for i := range list.Items {
		line(backupCells(opts, &list.Items[i], now)...)
	}
	return w.Flush()
}

// backupCells returns the texts of a row.
func backupCells(opts *BackupsOptions, b *fleetv1.EtcdBackup, now time.Time) []string {
	verified, size, revision, message := "", "", "", ""
	if b.Status.Verified != nil {
		verified = string(b.Status.Verified.Method)
	}
	key, member, version := "", "", ""
	if b.Status.Archive != nil {
		size, key = clusterflags.Size(b.Status.Archive.SizeBytes), b.Status.Archive.Key
	}
	if b.Status.Etcd != nil {
		revision, member, version = fmt.Sprint(b.Status.Etcd.Revision), b.Status.Etcd.Member, b.Status.Etcd.Version
	}
	for _, t := range []string{fleetv1.BackupCompletedCondition, fleetv1.BackupVerifiedCondition} {
		if c := report.Get(b, t); c != nil && message == "" {
			message = c.Message
		}
	}
	list := []string{b.Spec.ClusterName, b.Name, or(cmp.Or(string(b.Status.Phase), string(fleetv1.BackupPhasePending))), or(verified),
		or(revision), or(size), duration.HumanDuration(now.Sub(b.CreationTimestamp.Time))}
	if opts.AllNamespaces {
		list = append([]string{b.Namespace}, list...)
	}
	if opts.Output == "wide" {
		list = append(list, or(member), or(version), b.Spec.StoreRef.Name, or(key))
	}
	return append(list, message)
}
