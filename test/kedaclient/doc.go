// Package kedaclient holds KEDA's own external-scaler client against the scaler of this project. It is a
// module of its own because that client comes with all of KEDA's scalers.
package kedaclient
