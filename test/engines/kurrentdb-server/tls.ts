/**
 * A certificate for 127.0.0.1 that nobody trusts, with its key: enough to see that a link is encrypted. Good for
 * nothing else.
 */
export const TLS = {
  key: `-----BEGIN PRIVATE KEY-----
MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQgvW9hUUStZGb2pMoa
64UX1+qJ9pKiLGyFzUuT+8nTT+ihRANCAAQiphJ3FaaQoPX55K9gzSGzcnky9yw+
81WExvImFcPliOQrz+f/r9myhd+ppSCaiD0eCfjMgqASxRnfTgpo7ryP
-----END PRIVATE KEY-----
`,
  cert: `-----BEGIN CERTIFICATE-----
MIIBmDCCAT6gAwIBAgIUEBBOUS/MaqxDJdIvF+rz13oMT88wCgYIKoZIzj0EAwIw
FDESMBAGA1UEAwwJbG9jYWxob3N0MCAXDTI2MTEyMTEwMzQwMFoYDzIxMjYxMDI4
MTAzNDAwWjAUMRIwEAYDVQQDDAlsb2NhbGhvc3QwWTATBgcqhkjOPQIBBggqhkjO
PQMBBwNCAAQiphJ3FaaQoPX55K9gzSGzcnky9yw+81WExvImFcPliOQrz+f/r9my
hd+ppSCaiD0eCfjMgqASxRnfTgpo7ryPo2wwajAdBgNVHQ4EFgQUXPPBI6Fhhaf8
7nTn4RnmFjVwF/8wHwYDVR0jBBgwFoAUXPPBI6Fhhaf87nTn4RnmFjVwF/8wGgYD
VR0RBBMwEYcEfwAAAYIJbG9jYWxob3N0MAwGA1UdEwEB/wQCMAAwCgYIKoZIzj0E
AwIDSAAwRQIhAMDLfieF6UZliWqzeZIhWGo//thGgw+4KEKrzhuEeUMkAiA28whM
TiwjcbOedWwgGq8ZAwwSq3jNJj3peOH8e5vE2w==
-----END CERTIFICATE-----
`,
};
