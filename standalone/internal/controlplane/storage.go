package controlplane

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/server/v3/etcdserver/api/v3client"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/pager"

	"sigs.k8s.io/cluster-api/sdk/failsafe"
	"sigs.k8s.io/cluster-api/standalone/internal/encryption"
)

// openKeys opens the keys with which the API server encrypts and decrypts Secrets.
func (c *ControlPlane) openKeys(ctx context.Context) error {
	stored, err := c.stored(ctx)
	if err != nil {
		return err
	}
	c.keys, err = encryption.Open(stored, encryption.Options{
		Path:   cmp.Or(c.options.EncryptionKeys, c.options.Dir.Path("encryption-keys.yaml")),
		Rotate: c.options.RotateEncryptionKey, Now: c.options.Clock.Now(),
	})
	return err
}

// stored returns how the Secrets in etcd are encrypted.
func (c *ControlPlane) stored(ctx context.Context) (encryption.Stored, error) {
	etcd := v3client.New(c.etcd.Server)
	defer func() { _ = etcd.Close() }()
	return encryption.Inspect(ctx, clientv3.KV(etcd))
}

// reencrypt encrypts every Secret with the latest key, and then drops the others. The next start continues what it could
// not finish; keys that are still needed are kept until then.
func (c *ControlPlane) reencrypt(ctx context.Context) {
	stored, err := c.stored(ctx)
	if err == nil && !c.keys.Current(stored) {
		err = c.rewriteSecrets(ctx)
	}
	if err == nil {
		stored, err = c.stored(ctx)
	}
	if err == nil {
		err = c.keys.Forget(stored)
	}
	if err != nil && ctx.Err() == nil {
		fmt.Fprintf(c.options.Log, "failed to re-encrypt Secrets with the latest key, retrying at the next start: %v\n", err)
	}
}

// rewriteSecrets updates each Secret without changes. The API server writes it if it is not encrypted with the latest
// key. On a conflict, another client has written the Secret, which encrypted it with that key.
func (c *ControlPlane) rewriteSecrets(ctx context.Context) error {
	client, err := kubernetes.NewForConfig(c.api.loopback)
	if err != nil {
		return fmt.Errorf("create a client for the API server: %w", err)
	}
	var failed []error
	pages := pager.New(func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
		return client.CoreV1().Secrets("").List(ctx, o)
	})
	err = pages.EachListItem(ctx, metav1.ListOptions{}, func(o runtime.Object) error {
		secret := o.(*corev1.Secret)
		_, err := client.CoreV1().Secrets(secret.Namespace).Update(ctx, secret, metav1.UpdateOptions{})
		if err != nil && !apierrors.IsConflict(err) && !apierrors.IsNotFound(err) {
			failed = append(failed, fmt.Errorf("rewrite Secret %s/%s: %w", secret.Namespace, secret.Name, failsafe.Redacted(err)))
		}
		return ctx.Err()
	})
	return errors.Join(append(failed, err)...)
}
