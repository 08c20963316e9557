"""A small workbook, as a sample: one sheet of two columns and a row of numbers."""

from base64 import b85decode

WORKBOOK: bytes = b85decode(
    r"P)h>@6aWAK2mk;8App47`Mk^k006E5000vJ003J<Z*FvDZggK%d2nTOT`qWSY^{;MPQ)+_#$Tn%iY`9gz<}B=z{)"
    r"Z30>0F}Mor=<_8sNzFD<aJAS5RL`~3Z6xqbV{B+U{-lFm%3`2j%OL=nYurc@^*mxx-"
    r"+a)yj<#xucTzrP2^Nh#@0R}a&-Pc-"
    r"5sX!E?(ws=mRDHOyskDtPo)fvn=c!yf&a81Jx%I=F`>*l7B$!EE%0t0<}yizHCpym~ezF@3&umpJLGM|`dyUPAV<"
    r"8kzk26mTNSFGehILJh#G1x8Ih(7(omwyJY_iXt$7q&O`H&9Ch1QY-"
    r"O00;m803iUYUxsIf0002(0000B0001Aa%F6DFD`OrY;%pzJq`jP6a?U_5Du_!V_{)fDjQql1rQ%U;pY)x<9d53S7"
    r"Tv0naP)oxMEb@Q*O?e#<mo5Te$1JoB*13m{gmnU>=R3np7XLS|~~fWf2bZe1y6;xD<PnT^<XsoZVgp|AEOEuklQJ"
    r"O_=)+|7$U1RW0^~ZxNnU!<{Hh1LYtEe7uuyP)h>@6aWAK2mk;8Aplz4BsGix007(o000jF004MwFL!TpYhrJ2Yc6"
    r"<gY>kgG4udcZMXwV105$E<0RdB&&OJd2ris9DWCyj!FM_gnvY-Cfv)sHzr>Dr|K0GIDA(WD9MC${wx07T_Ych(mF"
    r"DvQ`Ei3uK0#V@^FI9C#_A$Y3sP!L*jAQKSCjG*c$}UlweTkAR#B9(t+XeegmpoGo4{#gahZfG@w2tedfL((}9gmN"
    r"?FHlPZ1QY-O00;m803iSknFIfW0002q0000Q0001ZY%gDOWo&aVcW-iQVsCG2E_iKhE^=jTbB)hE3IZ_@hT*G(9A"
    r"Ia$u#hB`jjecr5GR|kn;&LI)Z3eK1q;iM7asV`6*n)rRZh9HdX=rR)k&nE05~Kpo~PEajuIOcFJsaI-G|jL2#0w-"
    r"0__d$%-"
    r"&R&yVa!C?cMPoxW$+Qo?Cbntn$N$XQP!9q72m2f?_pKL($+2eBE&$P)h>@6aWAK2mk;8Apl8dVW6M@000^R000O8"
    r"004MwFLN$<ZESUrQ4WGI42G{lb^r?``e4cujW_TF6{jq+jdTrod<U2XAAIZo^>6>CI0b&i&KN1)uJ^G~oyc$mh;3"
    r"&a#a$STPn}0#N0KBzAr5Tlz6`k@>ask5BkPsMg<VKUBZsNrMpcQnb8)IvA&s)Wx87WZ6Sq;LXhIN;FbinE=JP-"
    r"E?bi$`B}dgcYOY3IA&lFdE3J3?%-"
    r"3<)Tn+gh`U6l)0Rj{Q6aWAK2mk;8App47`Mk^k006E5000vJ0000000000004ji00000TSISdbY*UIUsQQ;WpiCF"
    r"cx`M@O928D0~7!N00;m803iUYUxsIf0002(0000B00000000000001h0sQ~~0AF%tY;!Lza%F6DP)h*<6ay3h000"
    r"O8001EXTHPcyi~s-"
    r"t+yDRo4*&oF0000000000fB~!l004MwFL!TpYhrJ2Yc6<gY*0%90u%!j000080000X01cS~|APPk0Nwxq02%-"
    r"Q00000000000Du8y0ssJbY%gDOWo&aVcW-iQVsCG2E_iKhE^=jTb5KhG0u%!j000080000X07++Ipr8N%02%=R00"
    r";m800000000000Du7?0{{ScY%g;zcx`M@O9ci10000500jUw0RRBz0{{R300"
)  # fmt: skip
