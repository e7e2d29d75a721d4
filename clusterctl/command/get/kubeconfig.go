package get

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1beta1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
	"sigs.k8s.io/cluster-api/clusterctl/clusterflags"
	"sigs.k8s.io/cluster-api/clusterctl/factory"
	"sigs.k8s.io/cluster-api/clusterctl/iostreams"
	"sigs.k8s.io/cluster-api/clusterctl/management"
)

// dataKey is the key of the kubeconfig in its Secret.
const dataKey = "value"

// KubeconfigOptions are the inputs of the command.
type KubeconfigOptions struct {
	IO          *iostreams.Streams
	Connect     func(management.Kubeconfig) (*management.Cluster, error)
	Kubeconfig  management.Kubeconfig
	Namespace   string
	ClusterName string
	Clock       clock.PassiveClock
	// User, if not empty, gets a kubeconfig with a client certificate for this user and these Groups, valid for TTL.
	User   string
	Groups []string
	TTL    time.Duration
	// WriteTo is a file, which only its owner can read; empty or - for standard output.
	WriteTo string
}

// NewKubeconfig returns the command. runF, if not nil, is run instead.
func NewKubeconfig(f *factory.Factory, runF func(context.Context, *KubeconfigOptions) error) *cobra.Command {
	opts := &KubeconfigOptions{IO: f.IO, Connect: f.Connect, Clock: clock.RealClock{}}
	cmd := &cobra.Command{
		Use:   "kubeconfig NAME",
		Short: "Gets the kubeconfig file for accessing a workload cluster",
		Long: `Print the admin kubeconfig of a workload cluster, or with --user one for a person or a program.

With --user, a client certificate is issued with the cluster's CA. It cannot be revoked, so it is short-lived. It has no
permissions but those that RBAC in the workload cluster grants to the user and the groups. Only those who may read the
Secret of the CA can issue certificates.`,
		Example: `  # Get the kubeconfig of a workload cluster
  clusterctl get kubeconfig my-cluster > my-cluster.kubeconfig

  # Get the kubeconfig of a workload cluster in a specific namespace
  clusterctl get kubeconfig my-cluster --namespace foo

  # Get the kubeconfig of a workload cluster of another management cluster
  clusterctl get kubeconfig my-cluster --kubeconfig-context mgmt

  # Issue a kubeconfig for a person, for a working day
  clusterctl get kubeconfig my-cluster --user jane --group developers --ttl 10h --write-to jane.kubeconfig`,
		Args: clusterflags.OneName,
		RunE: func(cmd *cobra.Command, args []string) error {
			opts.ClusterName = args[0]
			if err := checkUser(cmd, opts); err != nil {
				return err
			}
			if runF != nil {
				return runF(cmd.Context(), opts)
			}
			return runKubeconfig(cmd.Context(), opts)
		},
	}
	clusterflags.AddKubeconfig(cmd, &opts.Kubeconfig, false)
	clusterflags.AddNamespace(cmd, f, &opts.Kubeconfig, &opts.Namespace)
	cmd.Flags().StringVar(&opts.User, "user", "", "Issue a client certificate for this `user`, instead of printing the admin kubeconfig")
	cmd.Flags().StringArrayVar(&opts.Groups, "group", nil, "A `group` of the user. May be repeated")
	cmd.Flags().StringVar(&opts.WriteTo, "write-to", "",
		"The `file` to write to, readable only by its owner, or - for standard output (the default)")
	cmd.Flags().DurationVar(&opts.TTL, "ttl", defaultTTL, "How long the certificate is valid, at most 8760h")
	cmd.ValidArgsFunction = clusterflags.ClusterNames(f, &opts.Kubeconfig, &opts.Namespace)
	return cmd
}

func runKubeconfig(ctx context.Context, opts *KubeconfigOptions) error {
	cluster, err := opts.Connect(opts.Kubeconfig)
	if err != nil {
		return err
	}
	key := cluster.Key(opts.Namespace, opts.ClusterName)
	secretKey := client.ObjectKey{Namespace: key.Namespace, Name: key.Name + "-kubeconfig"}
	secret := &corev1.Secret{}
	err = cluster.Client.Get(ctx, secretKey, secret)
	if apierrors.IsNotFound(err) {
		return explainMissing(ctx, cluster, key)
	}
	if err != nil {
		return fmt.Errorf("cannot read the kubeconfig of cluster %s: %w", key, err)
	}
	kubeconfig, ok := secret.Data[dataKey]
	if !ok {
		return fmt.Errorf("kubeconfig Secret %s of cluster %s has no key %q", secretKey, key, dataKey)
	}
	if opts.User != "" {
		if kubeconfig, err = issue(ctx, opts, cluster, key, kubeconfig); err != nil {
			return err
		}
	}
	return opts.IO.Deliver(opts.WriteTo, append(kubeconfig, '\n'))
}

// explainMissing returns why there is no kubeconfig.
func explainMissing(ctx context.Context, cluster *management.Cluster, key client.ObjectKey) error {
	if err := cluster.CheckContract(ctx); err != nil {
		return err
	}
	err := cluster.Client.Get(ctx, key, &clusterv1beta1.Cluster{})
	if apierrors.IsNotFound(err) {
		return management.NoCluster(key)
	}
	if err != nil {
		return fmt.Errorf("cannot read cluster %s: %w", key, err)
	}
	return fmt.Errorf("cluster %s has no kubeconfig yet: it is created once the control plane endpoint is set; "+
		"see `clusterctl describe cluster %s -n %s`", key, key.Name, key.Namespace)
}
