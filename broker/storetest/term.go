package storetest

func termClauses() []clause { return nil }
