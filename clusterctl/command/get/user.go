package get

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"sigs.k8s.io/cluster-api/clusterctl/management"
	"sigs.k8s.io/cluster-api/sdk/pki"
)

const (
	// defaultTTL is a day: certificates cannot be revoked.
	defaultTTL = 24 * time.Hour
	// minTTL is longer than clocks differ.
	minTTL = time.Minute
	maxTTL = 365 * 24 * time.Hour
	// masters is the group that RBAC cannot restrict.
	masters = "system:masters"
	// maxName is the maximum length of a name in a certificate (RFC 5280).
	maxName = 64
)

// checkUser checks the flags of issued certificates.
func checkUser(cmd *cobra.Command, opts *KubeconfigOptions) error {
	if !cmd.Flags().Changed("user") {
		for _, flag := range []string{"group", "ttl"} {
			if cmd.Flags().Changed(flag) {
				return fmt.Errorf("--%s requires --user, for whom a certificate is issued", flag)
			}
		}
		return nil
	}
	switch {
	case strings.TrimSpace(opts.User) == "":
		return errors.New("--user is empty: set the name of the user")
	case strings.HasPrefix(opts.User, "system:"):
		return fmt.Errorf("--user is %q: names that start with system: are reserved for components of Kubernetes", opts.User)
	case opts.TTL < minTTL || opts.TTL > maxTTL:
		return fmt.Errorf("--ttl is %s: it must be between %s and %s", opts.TTL, minTTL, maxTTL)
	}
	for _, name := range append([]string{opts.User}, opts.Groups...) {
		switch {
		case strings.TrimSpace(name) == "":
			return errors.New("--group is empty: set the name of a group")
		case len(name) > maxName:
			return fmt.Errorf("--user or --group is %q: certificates have names of at most %d characters", name, maxName)
		}
	}
	for _, group := range opts.Groups {
		if strings.HasPrefix(group, "system:") && group != masters {
			return fmt.Errorf("--group is %q: of the groups that start with system:, only %s can be requested", group, masters)
		}
	}
	return nil
}

// issue returns a kubeconfig for the user, signed by the cluster's CA.
func issue(ctx context.Context, opts *KubeconfigOptions, m *management.Cluster, cluster client.ObjectKey, admin []byte) ([]byte, error) {
	key := pki.SecretKey(cluster, pki.ClusterCA)
	secret := &corev1.Secret{}
	if err := m.Client.Get(ctx, key, secret); err != nil {
		return nil, fmt.Errorf("cannot read the CA of cluster %s, which issues certificates: %w", cluster, err)
	}
	ca, err := pki.CAFrom(secret)
	if err != nil {
		return nil, fmt.Errorf("cannot issue a certificate for cluster %s: %w", cluster, err)
	}
	if ca.Key == nil {
		return nil, fmt.Errorf("cannot issue a certificate for cluster %s: Secret %s has no private key (%s): issue it where the CA is kept",
			cluster, key, pki.PrivateKeyKey)
	}
	now := opts.Clock.Now()
	request := pki.Request{CommonName: opts.User, Organizations: slices.Clone(opts.Groups), Validity: opts.TTL}
	kubeconfig, err := pki.UserKubeconfig(admin, ca, request, now)
	if err != nil {
		return nil, fmt.Errorf("cannot issue a kubeconfig of cluster %s for user %s: %w", cluster, opts.User, err)
	}
	if slices.Contains(opts.Groups, masters) {
		opts.IO.Warnf("Group %s has all permissions, and RBAC cannot restrict it", masters)
	}
	opts.IO.Infof("The certificate of user %s is valid until %s, and cannot be revoked before",
		opts.User, now.Add(opts.TTL).UTC().Format(time.RFC3339))
	return kubeconfig, nil
}
