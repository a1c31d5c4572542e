package storetest

func factsClauses() []clause { return nil }
